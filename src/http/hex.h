/* http/hex.h - the value of one hex digit, -1 for any other byte. */
#ifndef WEIR_HTTP_HEX_H
#define WEIR_HTTP_HEX_H

static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

#endif

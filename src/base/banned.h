/* base/banned.h - calls that no code may use; included last by every .c file (git's idea). */
#ifndef WEIR_BASE_BANNED_H
#define WEIR_BASE_BANNED_H
#undef strcpy
#define strcpy(a, b) strcpy_is_banned_use_strbuf
#undef strcat
#define strcat(a, b) strcat_is_banned_use_strbuf
#undef sprintf
#define sprintf(...) sprintf_is_banned_use_snprintf_or_strbuf
#undef strtok
#define strtok(a, b) strtok_is_banned_use_str_cut
#undef gets
#define gets(a) gets_is_banned
#undef atoi
#define atoi(a) atoi_is_banned_use_str_to_int
#undef rand
#define rand() rand_is_banned_use_random_bytes
#endif

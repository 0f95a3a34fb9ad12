"""Measuring: the machine, the processes, the rows of the table, and the report."""

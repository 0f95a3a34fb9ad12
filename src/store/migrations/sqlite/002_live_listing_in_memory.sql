-- Which tasks of a client are alive is kept in memory (store/client_tasks.h).
DROP INDEX tasks_client;

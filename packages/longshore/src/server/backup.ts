// What the command line knows of backups: the store makes them.

export { type BackupProgress, backUp } from "../store/sqlite/backup.ts";

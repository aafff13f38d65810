// Backups for the command line; the store makes them.

export { type BackupProgress, backUp } from "../store/sqlite/backup.ts";

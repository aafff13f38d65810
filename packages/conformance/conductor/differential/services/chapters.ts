// Chapters for a server with all services on: the scheduler, file storage, and variables with secrets and settings. The real server of the other
// chapters has none of them, because the scheduler writes to the database while requests do.
import type { Chapter } from "../../../src/differential/script.ts";
import { administration, storage } from "./administration.ts";
import { files } from "./files.ts";
import { searches, signals, tests } from "./runs.ts";
import { schedules } from "./schedules.ts";
import { secrets } from "./secrets.ts";

export const serviceChapters: readonly Chapter[] = [secrets, schedules, files, storage, administration, tests, signals, searches];

/** The variables that both servers get. */
export const serviceVariables = { CONDUCTOR_SECRET_DIFF_PASS: "a-secret-of-the-script", CONDUCTOR_ENV_DIFF_REGION: "eu" };

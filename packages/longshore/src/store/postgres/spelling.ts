// The parts of SQL that differ in PostgreSQL. Statements name no index, because PostgreSQL chooses the best one from its statistics.

import type { Spelling } from "../scan-sql.ts";

export const spelling: Spelling = { join: "JOIN", find: "strpos", using: () => "" };

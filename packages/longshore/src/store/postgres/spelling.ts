// What PostgreSQL spells in its own way. It needs no names of indexes: it knows how many rows each has.

import type { Spelling } from "../scan-sql.ts";

export const spelling: Spelling = { join: "JOIN", find: "strpos", using: () => "" };

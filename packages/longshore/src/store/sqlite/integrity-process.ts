// The program of a background check: checks the file that it is given and sends what it finds to its parent.

import { checkFilePages } from "./integrity.ts";

process.send?.(await checkFilePages(process.argv[2] as string));
process.disconnect?.();

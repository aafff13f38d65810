// The program of a background check.

import { answerParent } from "./child.ts";
import { checkFilePages } from "./integrity.ts";

await answerParent((file) => checkFilePages(file as string));

// The program that checks a file whose damage the operator accepted, and replaces it with what can be read of it.

import { answerParent } from "./child.ts";
import { checkFilePages } from "./integrity.ts";
import { salvage } from "./salvage.ts";

await answerParent(async (file) => {
  const damage = await checkFilePages(file as string);
  return damage.length === 0 ? [] : [...damage, await salvage(file as string)];
});

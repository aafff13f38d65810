// The program that checks a file whose damage was accepted, and puts what can be read of it in its place.

import { answerParent } from "./child.ts";
import { checkFilePages } from "./integrity.ts";
import { salvage } from "./salvage.ts";

await answerParent(async (file) => {
  const damage = await checkFilePages(file as string);
  return damage.length === 0 ? [] : [...damage, await salvage(file as string)];
});

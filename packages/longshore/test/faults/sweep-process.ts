// The process whose system calls are recorded: `sweep-process.ts DATA LEDGER ROUNDS`. Lines of the ledger are written at once: the
// recording shows what had been answered before each write of the store.
import { openSync, writeSync } from "node:fs";
import { playWorkload } from "./sweep-workload.ts";

const [data = "", ledgerFile = "", rounds = "1"] = process.argv.slice(2);
const ledger = openSync(ledgerFile, "a");
await playWorkload(data, Number(rounds), {
  sent: (key, value) => writeSync(ledger, `${JSON.stringify({ key, value })}\n`),
  answered: () => writeSync(ledger, "answered\n"),
});

// The attacker is another user of the machine and reads the list of processes, which shows secrets that were typed as arguments. Every
// command with such an argument must warn about this, name a safer place, and accept the secret from there.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { longshore, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";

const secret = "operator-secret-0123456789";
const warning = "in the list of processes";

it("a token in an argument causes a warning, and a token in the environment does not", async () => {
  const tokenFile = join(temporaryFolder(), "tokens.txt");
  writeFileSync(tokenFile, `operator:${secret}:ann\n`);
  const server = await startServer(["--ephemeral", "--token-file", tokenFile]);
  expect(server.text()).not.toContain(warning);
  const typed = await longshore(["workers", "--on", server.url, "--token", secret]);
  expect(typed).toMatchObject({ code: 0, stderr: expect.stringContaining(warning) });
  expect(typed.stderr).toContain("LONGSHORE_TOKEN");
  const kept = await longshore(["workers", "--on", server.url], { env: { LONGSHORE_TOKEN: secret } });
  expect(kept).toMatchObject({ code: 0, stderr: "" });
});

it.each([
  [["--token", `operator:${secret}`], "--token-file"],
  [["--flowkit-mongo", `mongodb://flowkit:${secret}@127.0.0.1:9/flowkit`], "--flowkit-mongo-file"],
])("a server that is started with %s warns of it, and names %s", async (args, better) => {
  const server = startLongshore(["start", "--ephemeral", "--port", "0", ...args]);
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  const [line] = await server.printed(/^\{.*in the list of processes.*\}$/m);
  expect(line).toContain(better);
  expect(server.text()).not.toContain(secret);
});

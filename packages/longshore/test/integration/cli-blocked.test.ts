// A blocked run of a durable function as a person sees it in a terminal: in `dev`, in the lists, and with --follow.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore, startLongshore, temporaryFolder } from "../support/cli.ts";

/** It waits for something that is not a command, and ends after the code is fixed. */
const appOf = (line: string) => `import { workflow } from "longshore";
export const order = workflow("order", async (w) => { ${line} });
`;

it("a blocked run ends --follow with its reason and how to resume it, is listed with the reason, and continues after a retry", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "app.mjs");
  writeFileSync(file, appOf("await new Promise(() => {});"));
  const dev = startLongshore(["dev", "app.mjs", "--port", "0", "--ephemeral"], { cwd: folder });
  const [, url = ""] = await dev.printed(/serves on (https?:\S+?),/);
  await dev.printed(/Serving until Ctrl-C/);
  const run = (...args: string[]) => longshore([...args, "--on", url], { cwd: folder });

  const followed = await run("run", "order", "--follow");
  const [, id = ""] = /^order (\w{26})\n/.exec(followed.stdout) ?? [];
  expect(followed).toMatchObject({ code: 1, stdout: expect.stringMatching(/\norder blocked\n$/) });
  expect(followed.stderr).toMatch(
    new RegExp(
      `^longshore: run ${id} blocked: .* waits for something .* use w\\.sleep\\(\\)\\. .*\`longshore replay ${id} FILE\`.*\`longshore retry ${id}\``,
    ),
  );
  await dev.printed(new RegExp(`\\norder blocked: .* \\(longshore runs ${id} --on`));
  expect((await run("runs", "--state", "blocked")).stdout).toMatch(
    / blocked .* The function order waits for something that is not a command/,
  );
  expect((await run("runs", id)).stdout).toMatch(/ use w\.sleep\(\)\.\n$/);

  writeFileSync(file, appOf("return 7;"));
  await dev.printed(/app\.mjs is loaded again\./);
  expect(await run("retry", id, "--follow")).toMatchObject({ code: 0, stdout: expect.stringMatching(/\n7\n$/) });
});

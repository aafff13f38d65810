// `longshore backup`, and a server that uses the copy.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { longshore, temporaryFolder } from "../support/cli.ts";
import { dataFolder, startRunServer } from "../support/run-server.ts";

describe("longshore backup", () => {
  it("copies a server's data while it accepts work, and the copy has everything that was acknowledged before", async () => {
    const data = dataFolder();
    const copy = join(temporaryFolder(), "copy");
    const server = await startRunServer(data);
    expect(new Set(await server.startRuns(100))).toEqual(new Set([201]));
    const blob = await fetch(`${server.url}/api/longshore/v1/blobs`, { method: "POST", body: "content of a blob" });
    const { hash } = (await blob.json()) as { hash: string };
    let isOver = false;
    const backup = longshore(["backup", copy, "--data", data, "--json"]).finally(() => {
      isOver = true;
    });
    // Work continues while the copy is made.
    let meanwhile = 0;
    while (!isOver && meanwhile < 10_000) {
      expect(await server.startRuns(1)).toEqual([201]);
      meanwhile++;
    }
    const { code, stdout, stderr } = await backup;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("blobs: 100 %") });
    expect(JSON.parse(stdout)).toEqual({ folder: copy, bytes: expect.any(Number), blobs: 1, missingBlobs: 0 });
    for (const name of readdirSync(copy)) expect([name, statSync(join(copy, name)).mode & 0o077]).toEqual([name, 0]);

    const restored = await startRunServer(copy);
    const count = await restored.countRuns();
    expect(count).toBeGreaterThanOrEqual(100);
    expect(count).toBeLessThanOrEqual(100 + meanwhile);
    expect(await (await fetch(`${restored.url}/api/longshore/v1/blobs/${hash}`)).text()).toBe("content of a blob");
    expect(await restored.startRuns(1)).toEqual([201]);
    expect((await longshore(["doctor", "--deep", "--data", copy, "--port", String(restored.port)])).stdout).toContain("all pages checked");
  });

  it("is restored by putting the copy in the place of the data folder", async () => {
    const data = dataFolder();
    const copy = join(temporaryFolder(), "copy");
    const server = await startRunServer(data);
    await server.startRuns(5);
    expect((await longshore(["backup", copy, "--data", data])).code).toBe(0);
    await server.startRuns(5);
    await server.stop();
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
    const restored = await startRunServer(data);
    expect(await restored.countRuns()).toBe(5);
  });

  it("refuses a folder that is not empty, and a source without data", async () => {
    const data = dataFolder();
    await (await startRunServer(data)).stop();
    const taken = join(temporaryFolder(), "taken");
    mkdirSync(taken);
    writeFileSync(join(taken, "file"), "");
    const refused = await longshore(["backup", taken, "--data", data]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`${taken} is not an empty folder`) });
    expect(readdirSync(taken)).toEqual(["file"]);
    const nothing = await longshore(["backup", join(taken, "new"), "--data", temporaryFolder()]);
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no data file in") });
    expect(existsSync(join(taken, "new"))).toBe(false);
  });

  it("refuses a broken link, and a folder inside the data", async () => {
    const data = dataFolder();
    await (await startRunServer(data)).stop();
    const link = join(temporaryFolder(), "link");
    symlinkSync(join(temporaryFolder(), "absent"), link);
    const dangling = await longshore(["backup", link, "--data", data]);
    expect(dangling).toMatchObject({ code: 2, stderr: expect.stringContaining(`${link} is not an empty folder`) });
    const inside = await longshore(["backup", join(data, "copy"), "--data", data]);
    expect(inside).toMatchObject({ code: 2, stderr: expect.stringContaining("is inside of the data folder") });
    expect(existsSync(join(data, "copy"))).toBe(false);
  });

  it("refuses a damaged source, and leaves nothing that a server would accept as a backup", async () => {
    const data = dataFolder();
    const server = await startRunServer(data);
    await server.startRuns(100);
    await server.stop();
    const file = join(data, "longshore.db");
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0, bytes.length - 4_096 * 3, bytes.length - 4_096 * 2));
    const copy = join(temporaryFolder(), "copy");
    const { code, stderr } = await longshore(["backup", copy, "--data", data]);
    expect(code).toBe(2);
    expect(stderr).toContain(`The data file ${file} cannot be copied: database disk image is malformed.`);
    expect(existsSync(join(copy, "longshore.db"))).toBe(false);
  });
});

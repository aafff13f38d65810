// Files of runs (`/api/files`).

import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { operator } from "../../support/conductor-world.ts";

interface Made {
  fileHandleId: string;
  uploadUrl: string;
}

/** Announces a file of a run, and returns it with its path. */
async function announce(c: ConductorServer, workflowId: string, contentType = "text/plain") {
  const text = await c.ask("POST", "/files", { workflowId, fileName: "a.txt", contentType });
  const made = JSON.parse(text) as Made;
  return { ...made, path: `/files/${workflowId}/${made.fileHandleId.split("/").at(-1)}` };
}

const put = (url: string, body: string) => fetch(url, { method: "PUT", body });

it("keeps the content of a file, and sends it as a download with its type", async () => {
  const c = await startConductor();
  const id = await c.begin([operator("WAIT", "wait")]);
  const { uploadUrl, path } = await announce(c, id, "text/html");
  expect(uploadUrl.startsWith(`${c.url}/api/files/content/`)).toBe(true);
  const content = "<script>".repeat(100_000);
  expect((await put(uploadUrl, "first")).status).toBe(204);
  expect((await put(uploadUrl, content)).status).toBe(204);
  await c.ask("POST", `${path}/upload-complete`);
  expect((await put(uploadUrl, "too late")).status).toBe(409);
  const { downloadUrl } = await c.read<{ downloadUrl: string }>(`${path}/download-url`);
  const found = await fetch(downloadUrl);
  expect(await found.text()).toBe(content);
  expect(Object.fromEntries(found.headers)).toMatchObject({
    ...{ "content-type": "text/html", "content-disposition": "attachment", "x-content-type-options": "nosniff" },
    "content-security-policy": "sandbox; default-src 'none'",
  });
  expect(await c.read(path)).toMatchObject({ uploadStatus: "UPLOADED", fileSize: content.length });
});

it("keeps content that no run has used for long, and forgets the files of runs that were removed", async () => {
  const c = await startConductor({ retention: { blobs: { ageMs: 2 * 86_400_000 } } });
  const [kept, removed] = [await c.begin([operator("WAIT", "wait")]), await c.begin([operator("WAIT", "wait")])];
  const files = [await announce(c, kept), await announce(c, removed)] as const;
  for (const { uploadUrl, path } of files) {
    await put(uploadUrl, path);
    await c.ask("POST", `${path}/upload-complete`);
  }
  await c.order("DELETE", removed, "/remove?archiveWorkflow=false");
  for (let hour = 0; hour < 100; hour++) {
    await c.clock.advance(3_600_000);
    await c.settle();
  }
  expect(await (await fetch(files[0].uploadUrl)).text()).toBe(files[0].path);
  expect((await c.send("GET", files[1].path)).status).toBe(404);
});

it("names what is wrong with a file", async () => {
  const c = await startConductor();
  const id = await c.begin([operator("WAIT", "wait")]);
  const refused = async (more: object) => {
    const { status, text } = await c.send("POST", "/files", { workflowId: id, fileName: "a", contentType: "text/plain", ...more });
    return `${status} ${JSON.parse(text).message}`;
  };
  expect(await refused({ fileName: "" })).toBe("400 fileName is missing, expected a text.");
  expect(await refused({ fileName: "x".repeat(256) })).toBe("400 fileName has 256 characters, expected at most 255.");
  expect(await refused({ contentType: "text/plain\r\nx: y" })).toContain("400 contentType is");
  expect(await refused({ workflowId: "absent" })).toBe("404 No such workflow found by id: absent");
  expect((await c.send("POST", `/files/${id}/f/multipart`)).text).toContain("Longshore does not serve uploads in parts");
});

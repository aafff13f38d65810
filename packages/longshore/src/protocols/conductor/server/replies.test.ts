import { expect, it } from "vitest";
import { invalid } from "./replies.ts";

it("shows in the message what this server does not support, and no name of a task that says the same", () => {
  const named = "taskReferenceName: x is not supported by this server should be unique across tasks";
  const unsupported = { path: "a.tasks[1]", message: "KAFKA_PUBLISH is not supported by this server", isUnsupported: true } as const;
  const { message, validationErrors } = JSON.parse(invalid([{ path: "a", message: named }, unsupported]).reply.body as string);
  expect(message).toBe("Validation failed, check below errors for detail. a.tasks[1]: KAFKA_PUBLISH is not supported by this server");
  expect(validationErrors).toEqual([
    { path: "a", message: named },
    { path: "a.tasks[1]", message: unsupported.message },
  ]);
});

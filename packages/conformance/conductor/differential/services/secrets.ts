// The variables of the server that definitions may read.
import type { Chapter } from "../../../src/differential/script.ts";
import { del, get, post, put } from "../steps.ts";

const PLAIN = { "content-type": "text/plain" };

export const secrets: Chapter = {
  name: "secrets",
  steps: [
    get("names", "/secrets"),
    post("names by POST", "/secrets"),
    get("names with parts", "/secrets/v2"),
    get("value", "/secrets/DIFF_PASS"),
    get("exists", "/secrets/DIFF_PASS/exists"),
    get("unknown", "/secrets/NOPE"),
    get("unknown exists", "/secrets/NOPE/exists"),
    put("store", "/secrets/NEW", "v1", { headers: PLAIN }),
    del("remove", "/secrets/DIFF_PASS"),
    get("environment", "/environment"),
    get("environment value", "/environment/DIFF_REGION"),
    get("environment unknown", "/environment/NOPE"),
  ],
};

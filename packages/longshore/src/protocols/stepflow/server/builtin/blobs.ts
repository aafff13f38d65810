// put_blob and get_blob: JSON that is stored under its hash.

import type { Json } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { blobIdIn } from "../../wire/blob-id.ts";
import { type BlobLibrary, blobTypes } from "../blob-library.ts";
import { type Component, failed, invalid, objectSchema, optionalText, textIn, valueIn } from "./component.ts";

const idSchema = { type: "string", description: "SHA-256 of the data, 64 hexadecimal digits." };

export function putBlob(blobs: BlobLibrary): Component {
  return {
    path: "/put_blob",
    description: "Stores JSON data and returns its id, which is computed from its content.",
    inputSchema: objectSchema("PutBlobInput", { data: { description: "Any JSON." }, blob_type: { enum: [...blobTypes] } }, ["data"]),
    outputSchema: objectSchema("PutBlobOutput", { blob_id: idSchema }, ["blob_id"]),
    async perform(call) {
      const data = valueIn(call, "data");
      const type = optionalText(call, "blob_type") ?? "data";
      const known = blobTypes.find((each) => each === type);
      if (known === undefined) throw invalid(call, `blob_type is ${JSON.stringify(type)}, expected one of ${blobTypes.join(", ")}`);
      return { blob_id: (await blobs.putJson(writeExact(data), { type: known })).blobId };
    },
  };
}

export function getBlob(blobs: BlobLibrary): Component {
  return {
    path: "/get_blob",
    description: "Returns the JSON data that is stored under an id.",
    inputSchema: objectSchema("GetBlobInput", { blob_id: idSchema }, ["blob_id"]),
    outputSchema: objectSchema("GetBlobOutput", { data: { description: "The data." } }, ["data"]),
    async perform(call) {
      const id = textIn(call, "blob_id");
      const hash = blobIdIn(id);
      if (hash === undefined) throw invalid(call, `blob_id is ${JSON.stringify(id.slice(0, 100))}, expected 64 hexadecimal digits`);
      const found = await blobs.find(hash);
      if (found === undefined) throw failed(call, `there is no blob ${hash}`);
      const text = await blobs.jsonText(found);
      if (text === undefined) throw failed(call, `the blob ${hash} is not JSON; its type is ${found.type}`);
      return { data: parseExact(text) as Json };
    },
  };
}

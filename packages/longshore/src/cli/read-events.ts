// Reads a stream of server-sent events (WHATWG HTML, section 9.2.6). Comments, which only keep the connection alive, are dropped.

export interface EventMessage {
  /** `message` unless the server named it. */
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** A line longer than this is no event of ours. */
const lineCharsMax = 16 * 1024 * 1024;

export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<EventMessage, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  let fields = emptyFields();
  for await (const part of bytes) {
    rest += decoder.decode(part, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    if (rest.length > lineCharsMax) throw new RangeError(`An event is longer than ${lineCharsMax} characters.`);
    for (const line of lines) {
      if (line !== "") addLine(fields, line);
      else {
        // An event without data is dispatched to nobody.
        if (fields.data.length > 0) yield { event: fields.event, id: fields.id, data: fields.data.join("\n") };
        fields = emptyFields();
      }
    }
  }
}

interface Fields {
  event: string;
  id: string | undefined;
  data: string[];
}

function emptyFields(): Fields {
  return { event: "message", id: undefined, data: [] };
}

function addLine(fields: Fields, line: string): void {
  const colon = line.indexOf(":");
  const name = colon === -1 ? line : line.slice(0, colon);
  const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") fields.data.push(value);
  else if (name === "event") fields.event = value;
  else if (name === "id") fields.id = value;
}

// Server-sent events over fetch, because EventSource cannot send a token.

export interface ServerEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** The most text that may arrive without the end of an event. */
const bufferMax = 8_000_000;

export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      buffer += value;
      if (buffer.length > bufferMax) throw new Error("An event is too large.");
      for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
        const event = parseEvent(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parseEvent(text: string): ServerEvent | undefined {
  let event = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  return data.length === 0 ? undefined : { event, id, data: data.join("\n") };
}

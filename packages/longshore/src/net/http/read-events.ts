// Reads a stream of server-sent events (WHATWG HTML, section 9.2.6). Comments, which only keep the connection alive, are dropped.

export interface EventMessage {
  /** Default: `message`. */
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** The default size limit of an event. Events of Longshore are shorter. */
const eventCharsMaxDefault = 16 * 1024 * 1024;

export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<EventMessage, void, void> {
  const parser = new EventParser();
  for await (const chunk of bytes) yield* parser.push(chunk);
}

/** Splits the received bytes into events; the bytes may be cut anywhere. Each character is processed once, even in long events. */
export class EventParser {
  readonly #decoder = new TextDecoder();
  readonly #charsMax: number;
  /** The pieces of a line that has not ended. */
  #pieces: string[] = [];
  #fields = emptyFields();
  /** The number of characters of the event so far. */
  #chars = 0;
  /** The last character was CR: an LF that follows belongs to it. */
  #afterCr = false;

  constructor(options: { charsMax?: number } = {}) {
    this.#charsMax = options.charsMax ?? eventCharsMaxDefault;
  }

  /** The events that these bytes complete. Throws a RangeError for an event that is too long. */
  push(bytes: Uint8Array): EventMessage[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    const events: EventMessage[] = [];
    const ends = /[\r\n]/g;
    let start = 0;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      const at = end.index;
      const completesCrLf = end[0] === "\n" && this.#afterCr && at === start;
      this.#afterCr = end[0] === "\r";
      if (!completesCrLf) this.#line(text.slice(start, at), events);
      start = at + 1;
    }
    if (start < text.length) {
      this.#afterCr = false;
      this.#keep(text.slice(start));
    }
    return events;
  }

  #keep(piece: string): void {
    this.#chars += piece.length;
    if (this.#chars > this.#charsMax) throw new RangeError(`An event is longer than ${this.#charsMax} characters.`);
    this.#pieces.push(piece);
  }

  #line(piece: string, events: EventMessage[]): void {
    this.#keep(piece);
    const line = this.#pieces.join("");
    this.#pieces = [];
    if (line !== "") return addLine(this.#fields, line);
    const { event, id, data } = this.#fields;
    // An event without data is not dispatched.
    if (data.length > 0) events.push({ event, id, data: data.join("\n") });
    this.#fields = emptyFields();
    this.#chars = 0;
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

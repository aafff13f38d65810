// What the owner serves to nodes: verbs by name, with JSON values. The link does not know their meaning.

/** One link, as the owner sees it. A node that connects again gets another. */
export interface LinkEnd {
  /** True after the link broke: nothing that is sent on it arrives. */
  readonly isOver: boolean;
}

/** A call, as the owner sees it. */
export interface LinkCall {
  /** Identifies the call. When a node sends a call again after the link broke, the key is the same. */
  readonly key: string;
  /** The node that calls. */
  readonly node: string;
  readonly link: LinkEnd;
  /** True when the node has sent this call before: it may have been carried out. */
  readonly isRepeat: boolean;
  /** Aborts when the caller does not want the answer any more, and when the link breaks. */
  readonly signal: AbortSignal;
}

/** A stream of events, as the owner sees it. */
export interface LinkStream {
  readonly node: string;
  emit(event: unknown): void;
  /** Ends the stream from this side; with an error when it failed. */
  end(error?: unknown): void;
}

export interface LinkService {
  /**
   * Carries out one call. A rejection reaches the caller with its code, message, detail and plain fields. After a broken link, the node
   * sends the same call again with the same key. The first one may still be in progress.
   */
  call(name: string, args: unknown, call: LinkCall): Promise<unknown>;
  /**
   * Opens a stream. `emit` sends events until the returned function is called: once, when the node closes the stream or the link breaks. It
   * is not called for a stream that the owner has ended. An error thrown by this method ends the stream.
   */
  open(name: string, args: unknown, stream: LinkStream): () => void;
  /** A link has ended. The signals of its calls abort, some in each turn of the event loop. The node may already have another link. */
  left?(link: LinkEnd): void;
}

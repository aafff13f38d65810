// What the owner serves to nodes: verbs by name, with JSON values. The link knows nothing of what they mean.

/** One link, as the owner sees it: a node that comes again has another. */
export interface LinkEnd {
  /** True when it broke: what is sent on it does not arrive. */
  readonly isOver: boolean;
}

/** A call, as the owner sees it. */
export interface LinkCall {
  /** The same when a node sends a call again after the link broke, and of no other call. */
  readonly key: string;
  /** The node that calls. */
  readonly node: string;
  readonly link: LinkEnd;
  /** True when the node has sent this call before, to this owner or to an earlier one: it may have been carried out. */
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
   * One call. A rejection reaches the caller with its code, message, detail and plain fields. When a link breaks during a call, the node
   * sends the same call again, perhaps while the first is still being carried out: the key shows it.
   */
  call(name: string, args: unknown, call: LinkCall): Promise<unknown>;
  /**
   * Opens a stream: `emit` sends events until the returned function is called, which happens once, when the node closes the stream or the
   * link breaks. It is not called for a stream that the owner has ended. An error that is thrown ends the stream with it.
   */
  open(name: string, args: unknown, stream: LinkStream): () => void;
  /** A link is over. Called after the signals of its calls were aborted, perhaps when its node has another one already. */
  left?(link: LinkEnd): void;
}

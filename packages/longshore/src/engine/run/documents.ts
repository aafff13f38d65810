// Small JSON texts that a dialect keeps by name and version beside its definitions, such as how often tasks of a name are tried.

export interface DocumentKey {
  readonly kind: string;
  readonly name: string;
}

export interface Document extends DocumentKey {
  readonly version: number;
  /** JSON text. */
  readonly body: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface DocumentStore {
  /** One version, or the highest one. */
  document(kind: string, name: string, version?: number): Promise<Document | undefined>;
  /** Ordered by name, then version; with a name only that one's versions. They are never all in memory at once. */
  eachDocument(kind: string, name?: string): AsyncIterable<Document>;
  /**
   * Keeps a version, replacing its earlier text. With `unlessThere` an existing one is left alone and false is returned. With `own` it is
   * what the server itself needs to go on: the quota, which callers may have filled, does not refuse it.
   */
  keepDocument(
    document: { kind: string; name: string; version: number; body: string },
    options?: { unlessThere?: boolean; own?: boolean },
  ): Promise<boolean>;
  /** One version, or all of them. Returns how many were there. */
  removeDocument(kind: string, name: string, version?: number): Promise<number>;
}

/** Documents of one kind. Each list walks over all of them; more than this is a generated mistake. */
export const documentsMax = 100_000;

// Small JSON texts that a dialect stores by name and version beside its definitions, such as retry settings for tasks of a name.

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
  /** Ordered by name, then version; with a name only its versions. They are never all in memory at once. */
  eachDocument(kind: string, name?: string): AsyncIterable<Document>;
  /**
   * Stores a version and replaces its earlier text. With `unlessThere`, an existing one is left unchanged and the result is false. With
   * `own`, the server itself needs the document, so the quota does not apply.
   */
  keepDocument(
    document: { kind: string; name: string; version: number; body: string },
    options?: { unlessThere?: boolean; own?: boolean },
  ): Promise<boolean>;
  /** Removes one version, or all of them. Returns how many there were. */
  removeDocument(kind: string, name: string, version?: number): Promise<number>;
}

/** Maximum number of documents of one kind. Each list visits all of them. Only a faulty program stores more. */
export const documentsMax = 100_000;

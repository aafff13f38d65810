// How large a value may be that is kept with a run: its input and output, those of its tasks, and what a template makes of them.
//
// Such a value is read, filled into templates, written and stored in one piece, by a decision that cannot stop half-way. Storing alone takes
// SQLite about 5 ms for each megabyte and row, and a report writes two or three rows. Larger content belongs into a blob, which is
// received, stored and sent in pieces.

/** What other orchestrators accept for the input or output of a task. */
export const payloadBytesMax = 10_240 * 1_024;

/** A request that carries one, with what surrounds it: four times what peers of gRPC take for a message by default. */
export const payloadRequestBytes = 16 * 1_024 * 1_024;

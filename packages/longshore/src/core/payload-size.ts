// The size limit of a value that is stored with a run: its input and output, those of its tasks, and the results of templates.
//
// Such a value is read, filled into templates, written and stored as a whole, in one decision that cannot pause. Storing alone takes SQLite
// about 5 ms per megabyte and row, and a report writes two or three rows. Larger content belongs into a blob, which is received, stored and
// sent in pieces.

/** The limit that other orchestrators have for the input or output of a task. */
export const payloadBytesMax = 10_240 * 1_024;

/** The limit of a request that carries such a value and its envelope: four times the default limit of a gRPC message. */
export const payloadRequestBytes = 16 * 1_024 * 1_024;

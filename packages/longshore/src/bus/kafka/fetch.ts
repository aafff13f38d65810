// Parses the response to a fetch. The records of each partition stay bytes: `records.ts` reads them, batch by batch.

import type { Connection, ConnectionPool, Reader } from "@platformatic/kafka";
import type { KafkaModule } from "./client.ts";

export interface FetchAnswer {
  readonly responses: readonly {
    readonly topicId: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly errorCode: number;
      readonly records: Buffer;
    }[];
  }[];
}

/** The first version that identifies topics by their ids, as `parse` expects. */
const fetchVersionMin = 13;

/** Connections for fetches: the library sends the requests, and `parse` reads the responses. */
export function rawFetches(kafka: KafkaModule, pool: ConnectionPool): ConnectionPool {
  const raw = {
    get(broker: Parameters<ConnectionPool["get"]>[0], done: (error: Error | null, connection?: Pick<Connection, "send">) => void): void {
      pool.get(broker, (error, connection) => (error ? done(error) : done(null, rawConnection(kafka, connection as Connection))));
    },
  };
  return raw as unknown as ConnectionPool;
}

function rawConnection(kafka: KafkaModule, connection: Connection): Pick<Connection, "send"> {
  const send: Connection["send"] = (key, version, write, _parse, tagged, tagsBack, done) => {
    const answered = done as unknown as (error: Error | null, answer?: FetchAnswer) => void;
    if (version < fetchVersionMin) return answered(new Error("The broker is older than Kafka 3.1, the oldest that records are read from."));
    connection.send(key, version, write, (_id, _key, _version, reader) => parse(kafka, reader, key, version), tagged, tagsBack, answered);
  };
  return { send };
}

/** Layout: FetchResponse.json of Kafka, from version 13 on. Throws the library's error for error codes in the response. */
function parse({ ResponseError }: KafkaModule, reader: Reader, apiKey: number, apiVersion: number): FetchAnswer {
  const errors: { [place: string]: [number, null] } = {};
  const failed = (place: string, code: number) => {
    if (code !== 0) errors[place] = [code, null];
    return code;
  };
  reader.skip(4); // How long the broker has throttled us.
  failed("", reader.readInt16());
  reader.skip(4); // The session, which is not used.
  const responses = reader.readArray((topics, at) => ({
    topicId: topics.readUUID(),
    partitions: topics.readArray((one, index) => {
      const partitionIndex = one.readInt32();
      const errorCode = failed(`/responses/${at}/partitions/${index}`, one.readInt16());
      one.skip(24); // Three offsets.
      one.readNullableArray((aborted) => aborted.skip(16));
      one.skip(4); // The replica that is better to read from.
      const size = Math.max(0, one.readUnsignedVarInt() - 1);
      const records = one.buffer.slice(one.position, one.position + size);
      one.skip(size);
      return { partitionIndex, errorCode, records };
    }),
  }));
  const answer = { responses };
  if (Object.keys(errors).length > 0) throw new ResponseError(apiKey, apiVersion, errors, answer);
  return answer;
}

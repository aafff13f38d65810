import { type Db, Decimal128, Long, MongoClient, MongoNetworkError, ObjectId } from "mongodb";
import { describe, expect, expectTypeOf, it } from "vitest";
import { connectMongo, duplicatesIn, ensureIndexes, type MongoDb, mongoCall, plain } from "./mongo-db.ts";

describe("opening MongoDB", () => {
  it("names the package and the command when the client is not installed", async () => {
    const missing = () => Promise.reject(Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" }));
    await expect(connectMongo({ url: "mongodb://127.0.0.1" }, missing)).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: "MongoDB needs the package mongodb: npm install mongodb",
    });
  });

  it("refuses an invalid address without quoting it", async () => {
    const url = "redis://user:secret@127.0.0.1";
    const failure = (await connectMongo({ url }).catch((error: unknown) => error)) as Error;
    expect(failure).toMatchObject({ code: "LONGSHORE_BAD_CONFIG", detail: { field: "mongo.url" } });
    expect(failure.message).not.toContain("secret");
  });

  it.each([
    ["mongodb://127.0.0.1:1", undefined, "flowkit"],
    ["mongodb://127.0.0.1:1/pipelines?retryWrites=false", undefined, "pipelines"],
    ["mongodb://user:p%40ss@127.0.0.1:1,127.0.0.1:2/pipelines", "other", "other"],
  ])("%s with the database %s opens %s", async (url, database, expected) => {
    const { db, close } = await connectMongo({ url, ...(database === undefined ? {} : { database }) });
    expect(db.databaseName).toBe(expected);
    await close();
  });

  it("accepts a database that the user has opened", () => {
    expectTypeOf<Db>().toExtend<MongoDb>();
    expect(new MongoClient("mongodb://127.0.0.1:1").db("x").databaseName).toBe("x");
  });
});

describe("errors of MongoDB", () => {
  const failing = (error: Error) => mongoCall("keep artifacts", () => Promise.reject(error)).catch((thrown: unknown) => thrown);

  it("that are transient are reported as transient", async () => {
    expect(await failing(new MongoNetworkError("reset"))).toMatchObject({
      code: "LONGSHORE_UNREACHABLE",
      message: "MongoDB did not keep artifacts: reset",
    });
    expect(await failing(Object.assign(new Error("not primary"), { code: 10_107 }))).toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
  });

  it("about size are reported as a limit", async () => {
    expect(await failing(Object.assign(new Error("BSONObj"), { code: 10_334 }))).toMatchObject({ code: "LONGSHORE_LIMIT" });
  });

  it("of any other type stay unchanged", async () => {
    const error = Object.assign(new Error("no permission"), { code: 13 });
    expect(await failing(error)).toBe(error);
  });

  it("about duplicates name them; mixed with others they are thrown", () => {
    const repeated = [
      { code: 11_000, index: 0 },
      { code: 11_000, index: 4 },
    ];
    expect(duplicatesIn({ writeErrors: repeated })).toEqual(new Set([0, 4]));
    expect(duplicatesIn({ writeErrors: repeated[1] })).toEqual(new Set([4]));
    const mixed = { writeErrors: [...repeated, { code: 121, index: 5 }] };
    expect(() => duplicatesIn(mixed)).toThrow();
    expect(() => duplicatesIn(new Error("no write errors"))).toThrow("no write errors");
    expect(() => duplicatesIn(Object.assign(new Error("refused"), { writeErrors: [] }))).toThrow("refused");
  });
});

describe("indexes of MongoDB", () => {
  const answering = (code: number | null) => {
    const collection = {
      createIndex: () => (code === null ? Promise.resolve("") : Promise.reject(Object.assign(new Error("index"), { code }))),
    };
    return { databaseName: "d", collection: () => collection } as unknown as MongoDb;
  };

  it.each([null, 85, 86])("are created, or exist already in another form (%s)", async (code) => {
    await expect(ensureIndexes(answering(code))).resolves.toBeUndefined();
  });

  it("that cannot be created cause an error", async () => {
    await expect(ensureIndexes(answering(13))).rejects.toMatchObject({ code: 13 });
  });
});

describe("values of BSON", () => {
  it("become JSON", () => {
    const id = new ObjectId("0123456789abcdef01234567");
    const value = {
      at: new Date(0),
      bad: new Date(Number.NaN),
      big: Long.fromString("9007199254740993"),
      id,
      cost: Decimal128.fromString("1.5"),
      none: undefined,
      list: [Long.fromInt(1)],
      n: 5n,
    };
    expect(plain(value)).toEqual({
      ...{ at: "1970-01-01T00:00:00.000Z", bad: null, big: 9007199254740992, id: "0123456789abcdef01234567", cost: 1.5, none: null },
      ...{ list: [1], n: 5 },
    });
  });

  it("are recognised by their class, not by a field of a document that names one", () => {
    const document = JSON.parse('{"_bsontype": "Long", "toString": 5, "__proto__": {"a": 1}}') as object;
    expect(JSON.stringify(plain(document))).toBe(JSON.stringify(document));
  });
});

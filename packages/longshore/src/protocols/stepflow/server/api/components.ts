// ComponentsService: the components of each plugin: built-in ones, configured mocks, and those that workers have registered.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { wholeRow } from "../../../../core/slices/slices.ts";
import { sortInSlices } from "../../../../core/slices/sort-slices.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ComponentInfoEntry, ListRegisteredComponentsResponse } from "../../wire/api-messages.ts";

type Entry = Encodable<typeof ComponentInfoEntry>;

/** The components of one plugin. */
export interface Listed {
  readonly plugin: string;
  readonly components: readonly ListedComponent[];
}

export interface ListedComponent {
  /** The id exactly as its worker sent it. */
  readonly id: string;
  readonly path: string;
  readonly description?: string;
  readonly inputSchema?: Json;
  readonly outputSchema?: Json;
}

/** Reads the components of the configured plugins. */
export interface ComponentSource {
  /** Never rejects: a plugin that cannot be reached is listed in `failed`. */
  list(): Promise<{ listed: readonly Listed[]; failed: readonly { readonly plugin: string; readonly error: string }[] }>;
}

export async function listComponents(
  source: ComponentSource,
  excludeSchemas: boolean,
  reader: Pick<Reader, "turn">,
): Promise<Encodable<typeof ListRegisteredComponentsResponse> & { components: Entry[] }> {
  const { listed, failed } = await source.list();
  const found = listed.flatMap(({ plugin, components: of }) =>
    of.map((component) => ({ plugin, component, key: `${component.path}\0${plugin}` })),
  );
  const sorted = await sortInSlices(found, (a, b) => (a.key < b.key ? -1 : 1), { turn: (rows) => reader.turn(rows / wholeRow) });
  const components = sorted.map(({ plugin, component }) => entryOf(plugin, component, excludeSchemas));
  return { components, complete: failed.length === 0, failedPlugins: [...failed] };
}

function entryOf(plugin: string, component: ListedComponent, excludeSchemas: boolean): Entry {
  const { id, path, description, inputSchema, outputSchema } = component;
  return {
    componentId: id,
    ...(description === undefined ? {} : { description }),
    ...(excludeSchemas ? {} : { ...schema("inputSchema", inputSchema), ...schema("outputSchema", outputSchema) }),
    path,
    plugin,
  };
}

/** The wire cannot carry schemas that are not objects (true and false). */
function schema(name: "inputSchema" | "outputSchema", value: Json | undefined): { [name: string]: JsonObject } {
  return isObject(value) ? { [name]: value as JsonObject } : {};
}

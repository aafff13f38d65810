// A form from JSON Schema: objects, lists, enums, texts, numbers and switches. For any other schema there is a field for JSON.

import { useSignal } from "@preact/signals";
import { Button } from "../ui/parts.tsx";

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly default?: unknown;
}

interface FieldProps {
  readonly schema: JsonSchema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** Deeper values are written as JSON. */
const depthMax = 4;

export function SchemaForm(props: FieldProps) {
  return (
    <div class="schema-form">
      <Fields {...props} depth={0} />
    </div>
  );
}

function Fields({ schema, value, onChange, depth }: FieldProps & { depth: number }) {
  const given = (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  if (schema.properties === undefined)
    return <Field name="input" isRequired={false} schema={schema} value={value} onChange={onChange} depth={depth} />;
  return (
    <>
      {Object.entries(schema.properties).map(([name, each]) => (
        <Field
          key={name}
          name={name}
          schema={each}
          isRequired={schema.required?.includes(name) ?? false}
          value={given[name]}
          depth={depth + 1}
          onChange={(next) => {
            const { [name]: _, ...rest } = given;
            onChange(next === undefined ? rest : { ...given, [name]: next });
          }}
        />
      ))}
    </>
  );
}

function Field({ name, schema, value, onChange, isRequired, depth }: FieldProps & { name: string; isRequired: boolean; depth: number }) {
  const kind = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  const label = `${schema.title ?? name}${isRequired ? "" : " (optional)"}`;
  const note = schema.description;
  if (kind === "object" && schema.properties !== undefined && depth < depthMax)
    return (
      <fieldset>
        <legend>{label}</legend>
        {note !== undefined && <p class="note">{note}</p>}
        <Fields schema={schema} value={value} onChange={onChange} depth={depth} />
      </fieldset>
    );
  if (kind === "array" && schema.items !== undefined && depth < depthMax) {
    const list = Array.isArray(value) ? value : [];
    return (
      <fieldset>
        <legend>{label}</legend>
        {note !== undefined && <p class="note">{note}</p>}
        {list.map((item, at) => (
          <div class="list-item" key={at}>
            <Field
              name={String(at + 1)}
              schema={schema.items as JsonSchema}
              isRequired
              value={item}
              depth={depth + 1}
              onChange={(next) => onChange(list.map((one, index) => (index === at ? next : one)))}
            />
            <Button
              kind="icon"
              icon="close"
              label={`Remove ${name} ${at + 1}`}
              onClick={() => onChange(list.filter((_one, index) => index !== at))}
            />
          </div>
        ))}
        <Button icon="plus" label={`Add to ${name}`} onClick={() => onChange([...list, undefined])} />
      </fieldset>
    );
  }
  return (
    <label class="field">
      {label}
      <Control schema={schema} kind={kind} value={value} onChange={onChange} />
      {note !== undefined && <span class="note">{note}</span>}
    </label>
  );
}

function Control({ schema, kind, value, onChange }: FieldProps & { kind: string | undefined }) {
  if (schema.enum !== undefined)
    return (
      <select
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : JSON.parse(event.currentTarget.value))}
      >
        <option value="">-</option>
        {schema.enum.map((one) => (
          <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
            {String(one)}
          </option>
        ))}
      </select>
    );
  if (kind === "boolean")
    return (
      <select
        value={value === undefined ? "" : String(value)}
        onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value === "true")}
      >
        <option value="">-</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  if (kind === "number" || kind === "integer")
    return (
      <input
        type="number"
        step={kind === "integer" ? 1 : "any"}
        value={typeof value === "number" ? value : ""}
        onInput={(event) => onChange(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}
      />
    );
  if (kind === "string")
    return (
      <input
        value={typeof value === "string" ? value : ""}
        onInput={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value)}
      />
    );
  return <JsonControl value={value} onChange={onChange} />;
}

function JsonControl({ value, onChange }: Pick<FieldProps, "value" | "onChange">) {
  const text = useSignal(value === undefined ? "" : JSON.stringify(value));
  return (
    <textarea
      rows={2}
      spellcheck={false}
      value={text.value}
      onInput={(event) => {
        text.value = event.currentTarget.value;
        try {
          onChange(text.value.trim() === "" ? undefined : JSON.parse(text.value));
        } catch {
          // Not JSON yet, so the earlier value stays.
        }
      }}
    />
  );
}

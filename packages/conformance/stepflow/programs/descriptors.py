"""Prints the messages, enums and services of the installed `stepflow.v1` and `google.rpc` as one JSON object.

They come from the descriptors that Google's compiler made from the .proto files, and not from our tables.
A field is [name in camelCase, number, type, rule].
"""
import importlib
import json
import pkgutil

import stepflow_py.proto as proto
from google.protobuf import any_pb2
from google.protobuf.descriptor import FieldDescriptor as Field
from google.rpc import error_details_pb2, status_pb2

SCALARS = {
    getattr(Field, name): name.removeprefix("TYPE_").lower()
    for name in dir(Field)
    if name.startswith("TYPE_") and name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}


def type_of(field):
    if field.type == Field.TYPE_ENUM:
        return "enum"
    return field.message_type.full_name if field.type == Field.TYPE_MESSAGE else SCALARS[field.type]


def rule_of(field):
    is_list = getattr(field, "is_repeated", None)
    if is_list if is_list is not None else field.label == Field.LABEL_REPEATED:
        return "repeated"
    oneof = field.containing_oneof
    # For each `optional` field the compiler makes a oneof with one member. The name of this oneof begins with an underscore.
    if oneof is not None and not oneof.name.startswith("_"):
        return f"oneof {oneof.name}"
    return "optional" if field.has_presence and field.type != Field.TYPE_MESSAGE else None


def row_of(field):
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return [field.camelcase_name, field.number, type_of(inner.fields_by_name["value"]), "map"]
    return [field.camelcase_name, field.number, type_of(field), rule_of(field)]


def messages_in(descriptors):
    for message in descriptors:
        if message.GetOptions().map_entry:
            continue
        yield message.full_name, [row_of(field) for field in message.fields]
        yield from messages_in(message.nested_types)


def methods_of(service):
    return {
        method.name: [method.input_type.full_name, method.output_type.full_name, method.client_streaming, method.server_streaming]
        for method in service.methods
    }


own = [importlib.import_module(f"stepflow_py.proto.{name}") for _, name, _ in pkgutil.iter_modules(proto.__path__) if name.endswith("_pb2")]
files = [module.DESCRIPTOR for module in [*own, any_pb2, status_pb2, error_details_pb2]]
print(
    json.dumps(
        {
            "messages": dict(entry for file in files for entry in messages_in(file.message_types_by_name.values())),
            "enums": {
                enum.full_name: {value.name: value.number for value in enum.values} for file in files for enum in file.enum_types_by_name.values()
            },
            "services": {service.full_name: methods_of(service) for file in files for service in file.services_by_name.values()},
        }
    )
)

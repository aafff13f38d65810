"""The message and the methods of grpcio.test.ts, made at run time, so that no code generator is needed."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2

_Field = descriptor_pb2.FieldDescriptorProto


def _make_text():
    file = descriptor_pb2.FileDescriptorProto(name="text.proto", package="test", syntax="proto3")
    file.dependency.extend(["google/protobuf/struct.proto", "google/protobuf/timestamp.proto"])
    text = file.message_type.add(name="Text")

    def add(number, name, kind, label=_Field.LABEL_OPTIONAL, **more):
        return text.field.add(number=number, name=name, type=kind, label=label, **more)

    add(1, "text", _Field.TYPE_STRING)
    add(2, "count", _Field.TYPE_UINT32)
    add(3, "blob", _Field.TYPE_BYTES)
    add(4, "value", _Field.TYPE_MESSAGE, type_name=".google.protobuf.Value")
    entry = text.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    entry.field.add(number=1, name="key", type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    entry.field.add(number=2, name="value", type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    add(5, "labels", _Field.TYPE_MESSAGE, _Field.LABEL_REPEATED, type_name=".test.Text.LabelsEntry")
    add(6, "numbers", _Field.TYPE_UINT32, _Field.LABEL_REPEATED)
    add(7, "at", _Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    text.oneof_decl.add(name="side")
    add(8, "left", _Field.TYPE_STRING, oneof_index=0)
    add(9, "right", _Field.TYPE_INT64, oneof_index=0)
    add(10, "struct", _Field.TYPE_MESSAGE, type_name=".google.protobuf.Struct")
    add(11, "single", _Field.TYPE_FLOAT)
    add(12, "precise", _Field.TYPE_DOUBLE)
    add(13, "inner", _Field.TYPE_MESSAGE, type_name=".test.Text")
    text.oneof_decl.add(name="_note")
    add(14, "note", _Field.TYPE_STRING, oneof_index=1, proto3_optional=True)

    pool = descriptor_pool.DescriptorPool()
    for known in (struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Text"))


Text = _make_text()


def path(method):
    return f"/test.Echo/{method}"

"""A member of a consumer group with aiokafka, with the settings of the reference. It prints its partitions and every record, and commits each record.

    group_member.py BROKERS TOPIC GROUP
"""
import asyncio
import json
import signal
import sys

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError


class Tell(ConsumerRebalanceListener):
    async def on_partitions_revoked(self, revoked) -> None:
        pass

    async def on_partitions_assigned(self, assigned) -> None:
        print(json.dumps({"assigned": sorted(one.partition for one in assigned)}), flush=True)


async def main() -> None:
    brokers, topic, group = sys.argv[1:]
    records = AIOKafkaConsumer(bootstrap_servers=brokers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest")
    records.subscribe([topic], listener=Tell())
    await records.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    try:
        async for record in records:
            print(json.dumps({"record": record.value.decode(), "partition": record.partition}), flush=True)
            try:
                await records.commit()
            except KafkaError as error:
                # The partitions were assigned again in the meantime.
                print(json.dumps({"commit": repr(error)}), flush=True)
    except asyncio.CancelledError:
        await records.stop()


if __name__ == "__main__":
    asyncio.run(main())

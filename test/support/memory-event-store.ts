import type { EventStore, StoredEvent } from '#storage/event-store.ts'

interface Stream {
  events: StoredEvent[]
  owner: string
  until: number
  failures: number
  retryAt: number
}

export interface MemoryEventStore extends EventStore {
  readonly streams: ReadonlyMap<string, Stream>
}

/** Events in a map, for tests of what stands on the store. */
export function memoryEventStore(): MemoryEventStore {
  const streams = new Map<string, Stream>()
  return {
    streams,
    append: async (name, events) => {
      const stream = streams.get(name) ?? { events: [], owner: '', until: 0, failures: 0, retryAt: 0 }
      streams.set(name, stream)
      stream.events.push(...events)
    },
    read: async (name, limit) => streams.get(name)?.events.slice(0, limit) ?? [],
    remove: async (name, ids) => {
      const stream = streams.get(name)
      if (stream === undefined) return 0
      const kept = stream.events.filter(({ id }) => !ids.includes(id))
      const removed = stream.events.length - kept.length
      stream.events = kept
      return removed
    },
    names: async () => [...streams.keys()],
    trim: async (name, { keep, since }) => {
      const stream = streams.get(name)
      if (stream === undefined) return { dropped: 0 }
      const kept = stream.events.slice(-keep).filter(({ time }) => time >= since)
      const dropped = stream.events.length - kept.length
      stream.events = kept
      return { dropped, ...(kept[0] === undefined ? {} : { oldest: kept[0].time }) }
    },
    claim: async (name, owner, { now, until }) => {
      const stream = streams.get(name)
      if (stream === undefined || stream.retryAt > now.getTime()) return undefined
      if (stream.owner !== owner && stream.until > now.getTime()) return undefined
      stream.owner = owner
      stream.until = until.getTime()
      return { failures: stream.failures }
    },
    release: async (name, owner, { failures, retryAt }) => {
      const stream = streams.get(name)
      if (stream?.owner !== owner) return
      Object.assign(stream, { owner: '', until: 0, failures, retryAt: retryAt?.getTime() ?? 0 })
    },
  }
}

import { withDatabase } from '#cli/command-line/installation.ts'
import { type KeyRing, readRing, ringRecord } from '#keys/key-ring.ts'

const attempts = 20

/**
 * Makes the keys of an endpoint older while a gateway uses them: all their events move to the past. The last check of
 * the documents stays.
 */
export function ageKeys(dataFolder: string, endpoint: string, seconds: number): Promise<KeyRing> {
  const earlier = (time: number | null): number | null => (time === null ? null : time - seconds * 1000)
  return withDatabase({ data: dataFolder }, async ({ keys }) => {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const stored = await keys.get(endpoint)
      if (stored === undefined) throw new Error(`no keys of ${endpoint}`)
      const ring = readRing(endpoint, stored.ring)
      const aged: KeyRing = {
        ...ring,
        cache: ring.cache === null ? null : { ...ring.cache, shorterSince: earlier(ring.cache.shorterSince) },
        keys: ring.keys.map((key) => ({
          ...key,
          created: key.created - seconds * 1000,
          visible: earlier(key.visible),
          activated: earlier(key.activated),
          gone: earlier(key.gone),
        })),
      }
      if (await keys.swap(endpoint, stored.version, ringRecord(aged))) return aged
    }
    throw new Error(`the keys of ${endpoint} are being changed all the time`)
  })
}

/** The keys of an endpoint in the database of a gateway. */
export function storedKeys(dataFolder: string, endpoint: string): Promise<KeyRing> {
  return withDatabase({ data: dataFolder }, async ({ keys }) => {
    const stored = await keys.get(endpoint)
    if (stored === undefined) throw new Error(`no keys of ${endpoint}`)
    return readRing(endpoint, stored.ring)
  })
}

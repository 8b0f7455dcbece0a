import { type KeyRing, mayActivateAt, type RingKey } from '#engine/keys/key-ring.ts'
import { type Publication, readBackName, sourceName } from '#engine/sts/publish/publication.ts'

/** What is stored of one endpoint. */
export interface EndpointKeys {
  readonly endpoint: string
  readonly ring: KeyRing
  readonly publications: ReadonlyMap<string, Publication>
}

/** For people: the keys in the order of their lives, then the state of publishing, without private parts. */
export function keyLines({ endpoint, ring, publications }: EndpointKeys): string[] {
  const order = ['next', 'active', 'retiring'] as const
  const keys = order.flatMap((state) => ring.keys.filter((key) => key.state === state))
  const lines = keys.map((key) => `  ${key.state.padEnd(8)} ${key.kid} ${key.alg}  ${note(key, ring)}`)
  const places = [...publications].map(([name, publication]) => `  ${placeLine(name, publication)}`)
  return [endpoint, ...lines, ...places]
}

/** For programs: one object for each endpoint. */
export function keyJson({ endpoint, ring, publications }: EndpointKeys): string {
  const activatesAt = mayActivateAt(ring)
  return JSON.stringify({
    endpoint,
    keys: ring.keys.map(({ kid, alg, state, given, custody, created, visible, activated, gone }) => ({
      kid,
      alg,
      state,
      given,
      custody,
      created: time(created),
      visibleSince: time(visible),
      activated: time(activated),
      ...(state === 'next' ? { activatesAt: time(activatesAt ?? null) } : {}),
      goneAt: time(gone),
    })),
    publications: Object.fromEntries(
      [...publications].map(([name, { done, failures, error, retryAt }]) => [
        name,
        { done: time(done), failures, error, retryAt: time(retryAt) },
      ]),
    ),
  })
}

export const isInOrder = ({ publications }: EndpointKeys): boolean =>
  [...publications.values()].every(({ failures }) => failures === 0)

function note(key: RingKey, ring: KeyRing): string {
  const kept = key.custody === null ? '' : `, in ${key.custody.key} version ${key.custody.version}`
  const given = `${key.given ? ', given' : ''}${kept}`
  if (key.state === 'active') return `signs since ${time(key.activated)}${given}`
  if (key.state === 'retiring') return `leaves the documents at ${time(key.gone)}`
  const at = mayActivateAt(ring)
  if (at === undefined) return `waits until it is seen at the issuer${given}`
  return `seen since ${time(key.visible)}, signs from ${time(at)}${given}`
}

function placeLine(name: string, { done, failures, error, retryAt }: Publication): string {
  if (name === sourceName) return `key source: REFUSED, the keys above stay: ${error}`
  const what = name === readBackName ? 'read back from the issuer' : `published to ${name}`
  if (failures === 0) return `${what}: ${time(done) ?? 'never'}`
  const last = done === null ? 'never succeeded' : `last succeeded at ${time(done)}`
  const often = failures === 1 ? 'once' : `${failures} times`
  return `${what}: FAILED ${often}, ${last}, next attempt at ${time(retryAt)}: ${error}`
}

const time = (millis: number | null): string | null => (millis === null ? null : new Date(millis).toISOString())

import { z } from 'zod'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { restoreFilter, storeFilter } from '#identity/filter/stored-filter.ts'
import { storedIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { ChainStep } from '#requests/routing/chain.ts'

const text = z.string()

const storedName = z
  .union([text, z.object({ claimed: text })])
  .transform((name) => (typeof name === 'string' ? Dn.parse(name) : Dn.parse(name.claimed).claimed()))

/** Claims of a token have a third part. */
const storedAttributes = z.array(z.tuple([text, z.array(text)], text)).transform((stored) => {
  const attributes = new Attributes()
  for (const [name, values, origin] of stored) {
    if (origin === 'claim') attributes.setClaim(name, values)
    else attributes.set(name, values)
  }
  return attributes
})

const storedFilter = text.transform((filter, { issues, value }) => {
  const restored = restoreFilter(filter)
  if (restored !== undefined) return restored
  issues.push({ code: 'custom', message: 'not a stored filter', input: value })
  return z.NEVER
})

const absent = text.nullable().transform((value) => value ?? undefined)

/** A subject as a session stores it. */
export const storedSubject = z.object({
  dn: storedName,
  identity: text.transform(storedIdentity),
  otherNames: z.array(storedName),
  uid: text,
  attributes: storedAttributes,
  level: z.number(),
  chain: text,
  link: z
    .object({
      dn: text.transform((dn) => Dn.parse(dn)),
      filter: storedFilter,
      id: absent,
      uidAttr: absent,
      added: storedAttributes,
    })
    .exactOptional(),
})

export const storedSteps = z.array(z.object({ chain: text, link: z.number(), name: text }))

export function storeSubject({ dn, identity, otherNames = [], uid, attributes, level, chain, link }: Subject) {
  return {
    dn: storeName(dn),
    identity,
    otherNames: otherNames.map(storeName),
    uid,
    attributes: storeAttributes(attributes),
    level,
    chain,
    ...(link && {
      link: {
        dn: link.dn.toString(),
        filter: storeFilter(link.filter),
        id: link.id ?? null,
        uidAttr: link.uidAttr ?? null,
        added: storeAttributes(link.added),
      },
    }),
  } satisfies JsonObject
}

const storeName = (dn: Dn): JsonValue => (dn.isClaimed ? { claimed: dn.toString() } : dn.toString())

const storeAttributes = (attributes: Attributes): JsonValue[] =>
  Array.from(attributes, ([name, values]) => [name, [...values], ...(attributes.isClaim(name) ? ['claim'] : [])])

export const storeSteps = (steps: readonly ChainStep[]): JsonValue[] =>
  steps.map(({ chain, link, name }) => ({ chain, link, name }))

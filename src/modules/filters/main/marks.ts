import * as z from 'zod'
import type { MarkedItem, MarkedItems } from '#contract/main.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { MarkedPortalItem, PortalItem } from '#sdk/filter/portal.ts'
import { answer, emptyAnswer, notFound } from './answer.ts'
import { type MainParts, userOf } from './main-parts.ts'
import { typed } from './request-body.ts'

export const useSchema = z.strictObject({ kind: z.enum(['url', 'workflow']), name: typed(256).min(1) })

/** Labels of what the caller sees, by kind and name. */
async function labelsOf(subject: Subject, { visibility }: MainParts): Promise<ReadonlyMap<string, string>> {
  const [urls, workflows] = await Promise.all([visibility.urls(subject), visibility.workflows(subject)])
  return new Map([
    ...urls.map(({ name, label }) => [keyOf({ kind: 'url', name }), label] as const),
    ...workflows.map(({ name, label }) => [keyOf({ kind: 'workflow', name }), label] as const),
  ])
}

const keyOf = ({ kind, name }: PortalItem): string => `${kind} ${name}`

export const listMarks =
  (parts: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> => {
    const { memory } = parts.host.portal
    const user = userOf(parts, subject)
    const labels = await labelsOf(subject, parts)
    const shown = (items: readonly MarkedPortalItem[]): MarkedItem[] =>
      items.flatMap((item) => {
        const label = labels.get(keyOf(item))
        return label === undefined ? [] : [{ kind: item.kind, name: item.name, label, at: item.at.toISOString() }]
      })
    const [favourites, recent] = await Promise.all([memory.favourites(user), memory.recent(user)])
    return answer({ favourites: shown(favourites), recent: shown(recent) } satisfies MarkedItems)
  }

export const addFavourite =
  (parts: MainParts) =>
  async ({ subject }: Exchange, kind = '', name = ''): Promise<GatewayResponse> => {
    const item = await seenItem(kind, name, subject, parts)
    if (!(await parts.host.portal.memory.addFavourite(userOf(parts, subject), item))) {
      throw new GatewayError('CONFLICT', `"${subject.uid}" has too many favourites`, {
        publicText: 'There are too many favourites already.',
      })
    }
    return emptyAnswer(204)
  }

/** Also of what the caller sees no more. */
export const removeFavourite =
  (parts: MainParts) =>
  async ({ subject }: Exchange, kind = '', name = ''): Promise<GatewayResponse> => {
    await parts.host.portal.memory.removeFavourite(userOf(parts, subject), readItem(kind, name))
    return emptyAnswer(204)
  }

export const noteUse =
  (parts: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const { kind, name } = await readJsonBody(request, useSchema, 4_096)
    const item = await seenItem(kind, name, subject, parts)
    await parts.host.portal.memory.noteUse(userOf(parts, subject), item)
    return emptyAnswer(204)
  }

async function seenItem(kind: string, name: string, subject: Subject, parts: MainParts): Promise<PortalItem> {
  const item = readItem(kind, name)
  if ((await labelsOf(subject, parts)).has(keyOf(item))) return item
  throw notFound(`no ${kind} "${name.slice(0, 80)}" for "${subject.uid}"`)
}

function readItem(kind: string, name: string): PortalItem {
  const read = useSchema.safeParse({ kind, name })
  if (!read.success) throw notFound(`nothing can be marked as "${kind.slice(0, 80)}"`)
  return read.data
}

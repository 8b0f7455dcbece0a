import * as z from 'zod'
import type { MarkedPortalItem, PortalItem, PortalOrg, PortalUrl } from '#features/portal/access/portal.ts'
import type {
  MarkedItem,
  MarkedItems,
  Organization,
  PortalLink,
  SearchResults,
} from '#features/portal/contract/main.ts'
import { mainConfig } from '#features/portal/contract/main.ts'
import {
  isAdministrator,
  isOperator,
  type MainParts,
  mayEdit,
  rightsOf,
  shownAttributes,
  userOf,
} from '#features/portal/front/main-parts.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, badRequest, emptyAnswer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { viewFormAttribute } from '#sdk/forms/form-attribute.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { clusterGroupColumns } from '#sdk/target-module/cluster-group-parameters.ts'
import { filledLabel } from '#sdk/workflow/workflow-label.ts'

export const frontPageOperations = {
  getConfig: {
    summary: 'What the portal needs to know, for the caller',
    answer: 'MainConfig',
    handle: showConfig,
  },
  getOrgs: {
    summary: 'The branches that the caller may see',
    answer: 'Organization',
    handle: showOrgs,
  },
  listLinks: {
    summary: 'The links (badges) of the caller',
    answer: 'PortalLink[]',
    handle: listLinks,
  },
  listLinksOfOrg: {
    summary: 'Those of one branch',
    answer: 'PortalLink[]',
    handle: listLinksOf,
  },
  search: {
    summary: 'Finds workflows, links and users',
    query: { q: 'What to look for', kind: '"workflow", "url" or "person"; may repeat' },
    requiredQuery: ['q'],
    answer: 'SearchResults',
    handle: search,
  },
  listFavorites: {
    summary: "The caller's favorites, and what was used last",
    answer: 'MarkedItems',
    handle: listMarks,
  },
  addFavorite: { summary: 'Adds a favorite', handle: addFavorite },
  removeFavorite: {
    summary: 'Removes a favorite',
    handle: removeFavorite,
  },
  noteUse: { summary: 'Records that something was used', body: 'RecentUse', handle: noteUse },
} satisfies OperationTable<MainParts>

/** The configuration of the portal for the caller, without names of workflows. */
async function showConfig(parts: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  const { settings, translate } = parts
  const { given } = settings
  const shown = shownAttributes(settings, subject)
  const attributes: Record<string, FormAttributeView> = Object.create(null)
  for (const attribute of shown) {
    // Clients of OpenUnison expect the limits here even if there are none.
    const { minChars, maxChars } = attribute
    attributes[attribute.name] = { ...viewFormAttribute(attribute), minChars, maxChars }
  }
  return answer(
    wireForm(mainConfig, {
      ...given,
      headerTitle: translate(given.headerTitle),
      frontPage: { title: translate(given['frontPage.title']), text: translate(given['frontPage.text']) },
      reasons: given.reasons.map(translate),
      canEditUser: mayEdit(settings, subject),
      attributes,
      requireReasons: given.requireReason,
      groupsFields: given.groupFields.length === 0 && settings.clusterGroups ? clusterGroupColumns : given.groupFields,
      attributeNameList: shown.map(({ name }) => name),
      createsUnknownUsers: given.jitWorkflow !== undefined,
      administrator: await isAdministrator(parts, subject),
      operator: await isOperator(parts, subject),
      canSearchPeople: rightsOf(settings, subject).delegate,
    }),
  )
}

const toLink = ({ name, label, org, url, icon }: PortalUrl): PortalLink => ({
  name,
  label,
  org: org ?? '',
  url,
  icon: icon ?? '',
})

async function listLinks({ visibility }: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  return answer((await visibility.urls(subject)).map(toLink))
}

/** The links of the org and those of every org. NOT_FOUND for an org that the caller does not see. */
async function listLinksOf({ visibility }: MainParts, { subject }: Exchange, org = ''): Promise<GatewayResponse> {
  if (!(await visibility.orgIds(subject)).has(org)) throw notFound(`no org "${org}" for "${subject.uid}"`)
  const urls = await visibility.urls(subject)
  return answer(urls.filter((url) => url.org === undefined || url.org === org).map(toLink))
}

async function showOrgs({ visibility }: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  return answer(orgTree(await visibility.orgs(subject)))
}

/** Several orgs at the top, or none, are below a root without id. */
function orgTree(orgs: readonly PortalOrg[]): Organization {
  const below = (parent: string | undefined): Organization[] =>
    orgs
      .filter((org) => org.parent === parent)
      .map(({ id, name, description, showInPortal, showInRequest, showInReports }) => ({
        id,
        name,
        description,
        showInPortal,
        showInRequest,
        showInReports,
        subOrgs: below(id),
      }))
  const [top, another] = below(undefined)
  if (top !== undefined && another === undefined) return top
  return {
    id: '',
    name: '',
    description: '',
    showInPortal: true,
    showInRequest: true,
    showInReports: true,
    subOrgs: below(undefined),
  }
}

const minLength = 2
const maxLength = 100
/** The most results of each kind. */
const maxFound = 20

const kinds = ['workflow', 'url', 'person'] as const
type Kind = (typeof kinds)[number]

/** Searches what the caller sees; users only for callers that may request for others. */
async function search(
  { settings, visibility, people }: MainParts,
  { request, subject }: Exchange,
): Promise<GatewayResponse> {
  const query = readQuery(request.query, ['q', 'kind'], ['kind'])
  const text = (query.q[0] ?? '').trim()
  if (text.length < minLength || text.length > maxLength || !text.isWellFormed() || text.includes('\0')) {
    throw badRequest(`q must have ${minLength} to ${maxLength} characters.`)
  }
  const asked = query.kind.map(readKind)
  const wants = (kind: Kind): boolean => asked.length === 0 || asked.includes(kind)
  const { delegate } = rightsOf(settings, subject)
  if (asked.includes('person') && !delegate) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" may not look for people`)
  }
  const has = (...texts: readonly string[]): boolean =>
    texts.some((one) => one.toLowerCase().includes(text.toLowerCase()))
  const workflows = wants('workflow')
    ? (await visibility.workflows(subject)).filter((one) => has(one.name, one.label, one.description))
    : []
  const urls = wants('url') ? (await visibility.urls(subject)).filter((one) => has(one.name, one.label)) : []
  const persons = wants('person') && delegate ? await people.find(text, maxFound + 1) : []
  const results: SearchResults = {
    workflows: workflows.slice(0, maxFound).map((one) => ({
      name: one.name,
      label: filledLabel(one),
      description: filledLabel({ ...one, label: one.description }),
      org: one.org ?? '',
      ...(one.dynamic === undefined ? {} : { dynamic: true as const }),
    })),
    urls: urls.slice(0, maxFound).map(toLink),
    people: persons.slice(0, maxFound),
    more: [workflows, urls, persons].some(({ length }) => length > maxFound),
  }
  return answer(results)
}

function readKind(word: string): Kind {
  const kind = kinds.find((known) => known === word)
  if (kind === undefined) throw badRequest(`kind must be one of ${kinds.join(', ')}.`)
  return kind
}

export const useSchema = z.strictObject({ kind: z.enum(['url', 'workflow']), name: storableText(256).min(1) })

/** Labels of what the caller sees, by kind and name. */
async function labelsOf(subject: Subject, { visibility }: MainParts): Promise<ReadonlyMap<string, string>> {
  const [urls, workflows] = await Promise.all([visibility.urls(subject), visibility.workflows(subject)])
  return new Map([
    ...urls.map(({ name, label }) => [keyOf({ kind: 'url', name }), label] as const),
    ...workflows.map(({ name, label }) => [keyOf({ kind: 'workflow', name }), label] as const),
  ])
}

const keyOf = ({ kind, name }: PortalItem): string => `${kind} ${name}`

async function listMarks(parts: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  const { memory } = parts.host.portal
  const user = userOf(parts, subject)
  const labels = await labelsOf(subject, parts)
  const shown = (items: readonly MarkedPortalItem[]): MarkedItem[] =>
    items.flatMap((item) => {
      const label = labels.get(keyOf(item))
      return label === undefined ? [] : [{ kind: item.kind, name: item.name, label, at: item.at.toISOString() }]
    })
  const [favorites, recent] = await Promise.all([memory.favorites(user), memory.recent(user)])
  return answer({ favorites: shown(favorites), recent: shown(recent) } satisfies MarkedItems)
}

async function addFavorite(parts: MainParts, { subject }: Exchange, kind = '', name = ''): Promise<GatewayResponse> {
  const item = await seenItem(kind, name, subject, parts)
  if (!(await parts.host.portal.memory.addFavorite(userOf(parts, subject), item))) {
    throw new GatewayError('CONFLICT', `"${subject.uid}" has too many favorites`, {
      publicText: 'There are too many favorites already.',
    })
  }
  return emptyAnswer(204)
}

/** Also removes items that the caller no longer sees. */
async function removeFavorite(parts: MainParts, { subject }: Exchange, kind = '', name = ''): Promise<GatewayResponse> {
  await parts.host.portal.memory.removeFavorite(userOf(parts, subject), readItem(kind, name))
  return emptyAnswer(204)
}

async function noteUse(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
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

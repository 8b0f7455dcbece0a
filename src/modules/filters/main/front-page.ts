import * as z from 'zod'
import type {
  FormAttributeView,
  MainConfig,
  MarkedItem,
  MarkedItems,
  Organization,
  PortalLink,
  SearchResults,
} from '#contract/main.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { viewFormAttribute } from '#modules/shared/forms/form-attribute.ts'
import { answer, badRequest, emptyAnswer, notFound } from '#modules/shared/http/json-answer.ts'
import { readJsonBody, storableText } from '#modules/shared/http/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { MarkedPortalItem, PortalItem, PortalOrg, PortalUrl } from '#sdk/filter/portal.ts'
import { type MainParts, mayEdit, rightsOf, shownAttributes, userOf } from './main-parts.ts'
import { readQuery } from './routes.ts'

const themeNames = [
  'themePrimaryMain',
  'themePrimaryDark',
  'themePrimaryLight',
  'themeSecondaryMain',
  'themeSecondaryDark',
  'themeSecondaryLight',
  'errorColor',
] as const

/** The configuration of the portal for the caller, without names of workflows. */
export const showConfig =
  ({ settings, visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> => {
    const { given } = settings
    const shown = shownAttributes(settings, subject)
    const attributes: Record<string, FormAttributeView> = Object.create(null)
    for (const attribute of shown) {
      // Clients of OpenUnison expect the limits here even if there are none.
      const { minChars, maxChars } = attribute
      attributes[attribute.name] = { ...viewFormAttribute(attribute), minChars, maxChars }
    }
    const theme = Object.fromEntries(themeNames.map((name) => [name, given[name]])) as Record<
      (typeof themeNames)[number],
      string
    >
    const config: MainConfig = {
      displayNameAttribute: given.displayNameAttribute,
      uidAttributeName: given.uidAttributeName,
      frontPage: { title: given['frontPage.title'], text: given['frontPage.text'] },
      canEditUser: mayEdit(settings, subject),
      showPortalOrgs: given.showPortalOrgs,
      logoutURL: given.logoutURL,
      enableApprovals: given.enableApprovals,
      attributes,
      ...(given.roleAttribute === undefined ? {} : { roleAttribute: given.roleAttribute }),
      warnMinutesLeft: given.warnMinutesLeft,
      requireReasons: given.requireReason,
      reasonIsList: given.reasonIsList,
      reasons: given.reasons,
      startPage: given.startPage,
      hidePages: given.hidePages,
      ...theme,
      headerTitle: given.headerTitle,
      groupsAreJson: given.groupsAreJson,
      groupsFields: given.groupFields,
      attributeNameList: shown.map(({ name }) => name),
      createsUnknownUsers: given.jitWorkflow !== undefined,
      administrator: await visibility.allows(subject, settings.administrators),
      canSearchPeople: rightsOf(settings, subject).delegate,
    }
    return answer(config)
  }

const toLink = ({ name, label, org, url, icon }: PortalUrl): PortalLink => ({
  name,
  label,
  org: org ?? '',
  url,
  icon: icon ?? '',
})

export const listLinks =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> =>
    answer((await visibility.urls(subject)).map(toLink))

/** The links of the org and those of every org. NOT_FOUND for an org that the caller does not see. */
export const listLinksOf =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange, org = ''): Promise<GatewayResponse> => {
    if (!(await visibility.orgIds(subject)).has(org)) throw notFound(`no org "${org}" for "${subject.uid}"`)
    const urls = await visibility.urls(subject)
    return answer(urls.filter((url) => url.org === undefined || url.org === org).map(toLink))
  }

export const showOrgs =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> =>
    answer(orgTree(await visibility.orgs(subject)))

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
export const search =
  ({ settings, visibility, people }: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
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
      workflows: workflows
        .slice(0, maxFound)
        .map(({ name, label, description, org }) => ({ name, label, description, org: org ?? '' })),
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

/** Also removes items that the caller no longer sees. */
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

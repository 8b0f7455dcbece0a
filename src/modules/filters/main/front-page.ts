import type { FormAttributeView, MainConfig, Organization, PortalLink, SearchResults } from '#contract/main.ts'
import { GatewayError } from '#kernel/errors.ts'
import { viewFormAttribute } from '#modules/shared/forms/form-attribute.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { PortalOrg, PortalUrl } from '#sdk/filter/portal.ts'
import { answer, badRequest, notFound } from './answer.ts'
import { type MainParts, mayEdit, rightsOf, shownAttributes } from './main-parts.ts'
import { readQuery } from './routes.ts'

const defaultTheme = {
  themePrimaryMain: '#AC1622',
  themePrimaryDark: '#780f17',
  themePrimaryLight: '#bc444e',
  themeSecondaryMain: '#16aca0',
  themeSecondaryDark: '#0f7870',
  themeSecondaryLight: '#44bcb3',
  errorColor: '#ff1744',
} as const

const themeNames = Object.keys(defaultTheme) as (keyof typeof defaultTheme)[]

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
    const theme = Object.fromEntries(themeNames.map((name) => [name, given[name] ?? defaultTheme[name]])) as Record<
      keyof typeof defaultTheme,
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

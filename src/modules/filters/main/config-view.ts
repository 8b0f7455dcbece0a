import type { FormAttributeView } from '#contract/form-attribute.ts'
import type { MainConfig } from '#contract/main.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { viewFormAttribute } from '#sdk/form-attribute.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { answer } from './answer.ts'
import { type MainParts, mayEdit, rightsOf, shownAttributes } from './main-parts.ts'

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

/** What the portal needs to know, for the one who asks; names of workflows are not part of it. */
export const showConfig =
  ({ settings, visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> => {
    const { given } = settings
    const shown = shownAttributes(settings, subject)
    const attributes: Record<string, FormAttributeView> = Object.create(null)
    for (const attribute of shown) {
      // OpenUnison's clients find the limits here even where there are none.
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

import type { Portal } from '#features/portal/access/portal.ts'
import { localizedAttribute } from '#sdk/forms/form-attribute.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { acceptedLanguage, type Translate, translator } from '#sdk/page/configured-texts.ts'
import { type MainParts, Visibility } from './main-parts.ts'
import type { MainSettings } from './main-settings.ts'

/** The parts of the API for callers of each language: the same, with the texts of the configuration in that language. */
export function localizedParts<P extends MainParts>(parts: P): (request: Pick<GatewayRequest, 'headers'>) => P {
  const { host, settings } = parts
  const known = new Map<string, P>()
  return (request) => {
    const language = acceptedLanguage(request)
    if (host.texts?.has(language) !== true) return parts
    let localized = known.get(language)
    if (localized === undefined) {
      const translate = translator(host.texts, language)
      const local = { ...host, portal: localizedPortal(host.portal, translate) }
      localized = {
        ...parts,
        host: local,
        settings: localizedSettings(settings, translate),
        visibility: new Visibility(local),
        translate,
      }
      known.set(language, localized)
    }
    return localized
  }
}

/** Caches distinguish answers by language, if the configuration has texts in several. */
export function varying(response: GatewayResponse, { host }: Pick<MainParts, 'host'>): GatewayResponse {
  if (host.texts === undefined || host.texts.size === 0) return response
  return { ...response, headers: { ...response.headers, vary: 'accept-language' } }
}

function localizedPortal(portal: Portal, translate: Translate): Portal {
  return {
    ...portal,
    orgs: portal.orgs.map((org) => ({
      ...org,
      name: translate(org.name),
      description: translate(org.description),
    })),
    urls: portal.urls.map((url) => ({ ...url, label: translate(url.label) })),
    workflows: portal.workflows.map((workflow) => ({
      ...workflow,
      label: translate(workflow.label),
      description: translate(workflow.description),
    })),
  }
}

/** The labels. Texts that users send back, such as reasons, stay as they are configured. */
function localizedSettings(settings: MainSettings, translate: Translate): MainSettings {
  const labelled = (names: MainSettings['approvalAttributes']) =>
    names.map(({ name, label }) => ({ name, label: translate(label) }))
  return {
    ...settings,
    attributes: settings.attributes.map((attribute) => localizedAttribute(attribute, translate)),
    approvalAttributes: labelled(settings.approvalAttributes),
    approvalParameters: labelled(settings.approvalParameters),
  }
}

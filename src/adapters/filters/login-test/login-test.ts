import { isSecretAttribute } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { html, htmlErrors, page } from '#sdk/page/page.ts'
import { textsFor } from '#sdk/page/page-texts.ts'

const parameters = {
  logoutURI: parsed('path', readPath, { about: 'The path that the link “Sign out” leads to. No link when absent.' }),
  jspURI: text({ about: 'Not used: the page is part of Gatehouse. `check` says so.' }),
}

function readPath(written: string): string {
  if (/^\/(?![/\\])/.test(written)) return written
  throw new Error(`must be a path of this host, not "${written}"`)
}

/** Shows users their own login: name, chain, level and attributes. */
export default defineFilter({
  className: 'filters.LoginTest',
  aliases: ['com.tremolosecurity.prelude.filters.LoginTest'],
  parameters,
  answers: true,
  errors: htmlErrors,
  parse: (params, issues, context) => {
    const { logoutURI, jspURI } = readParameters(parameters, params, issues, context)
    if (jspURI !== undefined) issues.warning(params.pathOf('jspURI'), 'not used: the page is part of Gatehouse')
    return { logoutURI }
  },
  create: ({ logoutURI }) => ({
    async handle({ request, subject }) {
      allowMethods(request.method, 'GET', 'HEAD')
      return loginPage(subject, logoutURI, request)
    },
  }),
})

const mostAttributes = 200
const mostValues = 100
const longestValue = 2000

function loginPage(subject: Subject, logoutURI: string | undefined, request: GatewayRequest): GatewayResponse {
  const t = textsFor(request)
  const shown = [...subject.attributes]
    .filter(([name]) => !isSecretAttribute(name))
    .sort(([one], [other]) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1))
  const attributes = shown.slice(0, mostAttributes).map(
    ([name, values]) => html`<dt>${name}</dt>
${values.slice(0, mostValues).map((value) => html`<dd>${cut(value)}</dd>`)}${
  values.length > mostValues ? html`<dd>…</dd>` : ''
}`,
  )
  const facts = [
    [t('loginTest.user'), subject.uid],
    [t('loginTest.name'), subject.dn.toString()],
    [t('loginTest.chain'), subject.chain],
    [t('loginTest.level'), String(subject.level)],
  ].map(([label = '', value = '']) => html`<dt>${label}</dt><dd>${value === '' ? '–' : cut(value)}</dd>\n`)
  return page(
    200,
    t('loginTest.title'),
    html`<dl>
${facts}</dl>
<h2>${t('loginTest.attributes')}</h2>
<p>${t(attributes.length === 0 ? 'loginTest.none' : 'loginTest.secrets')}</p>
<dl>
${attributes}${shown.length > mostAttributes ? html`<dt>…</dt>` : ''}</dl>
${logoutURI === undefined ? '' : html`<p><a href="${logoutURI}">${t('logout.submit')}</a></p>`}`,
    { request },
  )
}

const cut = (value: string): string => (value.length > longestValue ? `${value.slice(0, longestValue)}…` : value)

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { password, settled, usePortal } from '#testing/browser/portal-browser.ts'

/** What any reader of texts could take for something else: markup, links, templates, CSS, a formula, another direction. */
const hostile = [
  '</title></script></textarea><img src=x onerror="ran=1"><svg onload="ran=1"></svg><script>ran=1</script>',
  '[link](javascript:ran=1) ![](data:image/svg+xml,x) <javascript:ran=1> [b]: data:text/html,x **[c](vbscript:x)**',
  "{{ran=1}} ${ran=1} #{ran=1} javascript:ran=1 style='background:url(https://evil.test/x)' \u202eevil",
].join(' ')
const short = '<img src=x onerror=ran=1>\u202e'
/** Of the operator. */
const title = '<img src=x onerror=ran=1>'
const vector =
  '<svg xmlns="http://www.w3.org/2000/svg" onload="ran=1"><script>ran=1</script><a href="javascript:ran=1"><text>x</text></a><image href="https://evil.test/x"/></svg>'
const picture = `data:image/svg+xml;base64,${Buffer.from(vector).toString('base64')}`

const written = (text: string): string => JSON.stringify(text)
const everyone = '  azRules:\n    - scope: dn\n      constraint: ou=people,o=Tremolo\n'
const object = (kind: string, name: string, spec: string): string =>
  `apiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata:\n  name: ${name}\nspec:\n${spec}`

const objects = [
  object(
    'Org',
    'odd',
    `  uuid: odd\n  parent: root\n  label: ${written(short)}\n  description: ${written(hostile)}\n${everyone}`,
  ),
  object(
    'PortalUrl',
    'odd',
    `  label: ${written(short)}\n  url: https://a.test/?q="><script>ran=1</script>\n  icon: ${picture}\n  org: root\n${everyone}`,
  ),
  object(
    'Report',
    'odd',
    `  name: ${written(short)}\n  description: ${written(hostile)}\n  orgId: root\n  sql: select subject as "<b>s</b>", reason as "r" from report_approvals\n  dataFields: ["<b>s</b>", "r"]\n`,
  ),
  object(
    'Workflow',
    'odd',
    `  label: ${written(short)}
  description: ${written(hostile)}
  inList: true
  orgId: root
  tasks: |-
    - taskType: approval
      label: ${written(short)}
      emailTemplate: ${written(hostile)}
      mailAttr: mail
      failureEmailSubject: ${written(short)}
      failureEmailMsg: ${written(hostile)}
      approvers:
        - scope: group
          constraint: cn=owners,ou=groups,ou=people,o=Tremolo
      onSuccess: []
`,
  ),
].join('---\n')

/** Runs in the page: what is there besides texts. The portal has one script, and pictures of its own or as data. */
const oddities = `(() => {
  const own = (address) => new URL(address, location.href).origin === location.origin
  const odd = []
  if ('ran' in window) odd.push('a script ran')
  const direct = /[\\u202a-\\u202e]/
  if (direct.test(document.title)) odd.push('the title changes direction')
  for (const element of document.querySelectorAll('*')) {
    const name = element.localName
    for (const attribute of element.attributes) {
      if (/^on/i.test(attribute.name) || /^(?:srcdoc|formaction|xlink:href)$/i.test(attribute.name)) odd.push(name + ' ' + attribute.name)
      if (attribute.name === 'href' && !/^(?:https?|mailto|otpauth):/.test(new URL(attribute.value, location.href).protocol)) odd.push(name + ' ' + attribute.value)
      if (attribute.name === 'style' && /url\\(/.test(attribute.value)) odd.push(name + ' ' + attribute.value)
      if (/^(?:title|alt|aria-label|placeholder)$/.test(attribute.name) && direct.test(attribute.value)) odd.push(name + ' ' + attribute.name + ' changes direction')
    }
    if (/^(?:iframe|object|embed|base|image|foreignobject)$/i.test(name)) odd.push(name)
    if (name === 'img' && !/^data:image/.test(element.getAttribute('src') ?? '') && !own(element.src)) odd.push(element.src)
    if (name === 'script' && !own(element.src)) odd.push('script ' + element.src)
    if (name === 'a' && element.target === '_blank' && !own(element.href) && !/noopener/.test(element.rel)) odd.push('an opener for ' + element.href)
    for (const node of element.childNodes)
      if (node.nodeType === 3 && direct.test(node.data) && !/^(?:script|style)$/.test(name)) odd.push('changes direction: ' + element.outerHTML.slice(0, 150))
  }
  return odd
})()`

describe.skipIf(!hasChromium())('stored texts of every kind', () => {
  const { visit, open } = usePortal({
    changes: {
      'seed/people.json': (text) => {
        const people = JSON.parse(text)
        people.groups.push({ name: short })
        for (const user of people.users) {
          if (user.userID !== 'ada') continue
          Object.assign(user.attributes, {
            displayName: [hostile.slice(0, 80) + short],
            mail: [`"${short}"@example.com`],
            note: [hostile],
          })
          user.groups = [short]
        }
        return JSON.stringify(people)
      },
      'portal.yaml': (text) =>
        text
          .replace('frontPage.title: Welcome', `frontPage.title: ${written(short)}`)
          .replace('frontPage.text: Your links, requests and approvals.', `frontPage.text: ${written(hostile)}`)
          .replace(
            '            title: Example\n',
            `            title: ${written(title)}\n            logo: ${picture}\n`,
          )
          .replace('headerTitle: Example', `headerTitle: ${written(title)}\n            themePrimaryMain: "#123456"`),
    },
    more: { 'odd.yaml': objects },
  })

  async function sweep(page: Page, addresses: readonly string[]): Promise<readonly string[]> {
    const found: string[] = []
    for (const address of addresses) {
      await page.goto(address)
      await settled(page)
      for (const one of await page.evaluate<readonly string[]>(oddities)) found.push(`${address}: ${one}`)
    }
    return found
  }

  test('are texts on every page: none runs, links elsewhere or changes its direction', async () => {
    const { page: ada, complaints } = await visit('/portal', 'ada')
    const put = async (page: Page, path: string, data: object): Promise<number> => {
      const headers = { origin: new URL(page.url()).origin, 'x-requested-with': 'portal' }
      return (await page.request.put(path, { data, headers })).status()
    }
    const line = { name: 'odd', encryptedParams: '', uuid: '1', reason: hostile }
    expect(await put(ada, '/portal/main/workflows', [line])).toBe(200)
    const [{ id }] = (await (await ada.request.get('/portal/main/requests')).json()).requests

    const { page: grace, complaints: hers } = await visit('/portal/approvals', 'grace')
    const [{ approval }] = (await (await grace.request.get('/portal/main/approvals')).json()).approvals
    const found = [...(await sweep(grace, ['/portal/approvals', `/portal/approvals/${approval}`]))]
    expect(await put(grace, `/portal/main/approvals/${approval}`, { approved: false, reason: hostile })).toBe(200)

    const given = encodeURIComponent(hostile)
    const pages = [
      'request',
      'requests',
      `requests/${id}`,
      'notifications',
      'profile',
      'reports/odd',
      `request?org=${given}`,
    ]
    found.push(...(await sweep(ada, ['/portal', ...pages.map((part) => `/portal/${part}`)])))

    const { page: linus, complaints: his } = await visit('/portal/reports/odd', 'linus')
    const shown = ['people', 'groups', 'runs', 'workflows', 'audit', 'configuration']
    found.push(...(await sweep(linus, ['/portal/reports/odd', ...shown.map((part) => `/portal/console/${part}`)])))
    expect(found).toEqual([])
    const notMissing = (line: string): boolean => !/status of (?:400|403|404)/.test(line)
    expect([complaints, hers, his].map((lines) => lines.filter(notMissing))).toEqual([[], [], []])
  })

  test('of a login that fails are texts', async () => {
    const { page, complaints } = await open('/portal')
    await page.getByLabel('User name').fill(hostile.slice(0, 200))
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.evaluate<readonly string[]>(oddities)).toEqual([])
    expect(complaints.filter((line) => !/status of 401/.test(line))).toEqual([])
  })
})

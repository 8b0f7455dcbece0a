import { afterAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, heading, isTooWide, picture, useBrowser } from '#testing/browser/portal-browser.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { missingPart } from '#testing/run/missing-part.ts'
import { type PortalConfig, portalConfig } from '#testing/stories/portal-config.ts'

const nameSpace = 'team-with-a-rather-long-name-that-has-to-wrap-on-a-phone'
const rbac = 'rbac.authorization.k8s.io'
const label = `Namespace ${nameSpace} for Ada Lovelace`

const task = (className: string, params: object) => ({
  taskType: 'customTask',
  className: `com.tremolosecurity.provisioning.tasks.${className}`,
  params: { targetName: 'k8s', ...params },
})

const tasks = [
  { taskType: 'customTask', className: 'tasks.LoadAttributes', params: { name: ['displayName'], nameAttr: 'uid' } },
  { taskType: 'addAttribute', name: 'nameSpace', value: nameSpace, remove: false, addToRequest: true },
  {
    taskType: 'approval',
    label: 'Namespace $nameSpace$ for ${displayName}',
    emailTemplate: 'A namespace was requested.',
    mailAttr: 'mail',
    failureEmailSubject: 'Denied',
    failureEmailMsg: 'Denied',
    approvers: [{ scope: 'group', constraint: 'cn=owners,ou=groups,ou=people,o=Tremolo' }],
    onSuccess: [
      task('CreateK8sObject', {
        template: stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: '$nameSpace$' } }),
      }),
      task('CreateK8sObject', {
        template: stringify({
          apiVersion: `${rbac}/v1`,
          kind: 'RoleBinding',
          metadata: { name: 'administrators', namespace: '$nameSpace$' },
          subjects: [{ kind: 'Group', name: 'administrators-of-$nameSpace$', apiGroup: rbac }],
          roleRef: { kind: 'ClusterRole', name: 'admin', apiGroup: rbac },
        }),
      }),
      task('PatchK8sObject', {
        kind: 'Namespace',
        url: '/api/v1/namespaces/default',
        template: '{"metadata": {"annotations": {"latest": "$nameSpace$"}}}',
      }),
    ],
  },
]

function objects({ url, ca, adminToken: token }: KubeApiServer): string {
  const params = { url, token, certificate: Buffer.from(ca).toString('base64'), useToken: 'true' }
  const object = (kind: string, name: string, spec: object) =>
    stringify({ apiVersion: 'openunison.tremolo.io/v1', kind, metadata: { name }, spec })
  const target = { className: 'targets.Kubernetes', params }
  const workflow = { label: 'New namespace', description: 'A namespace', inList: true, orgId: 'root' }
  return `${object('Target', 'k8s', target)}---\n${object('Workflow', 'new-namespace', { ...workflow, tasks: stringify(tasks) })}`
}

const binaries = await kubeBinaries().catch((error: unknown) => {
  missingPart('the Kubernetes API server', error)
  return undefined
})

describe.skipIf(binaries === undefined || !hasChromium())('the approval of a namespace', () => {
  let server: KubeApiServer | undefined
  let config: PortalConfig | undefined
  const { visit } = useBrowser(
    async () => {
      if (binaries === undefined) throw new Error('there is no API server')
      server = await startKubeApiServer(binaries)
      config = portalConfig({ more: { 'namespaces.yaml': objects(server) } })
      return await startGatewayProcess({ config: config.folder })
    },
    () => config?.remove(),
  )
  afterAll(async () => {
    server?.client.close()
    await server?.stop()
  })

  test('shows the objects that it creates and changes, on all screens, before it is given', async () => {
    const { page: ada } = await visit('/portal/request', 'ada')
    await ask(ada, 'New namespace', 'For the new team')
    const path = `/api/v1/namespaces/${nameSpace}`
    const { page, complaints } = await visit('/portal/approvals', 'grace')
    await page.getByRole('link', { name: label }).click()
    for (const viewport of [
      { width: 1280, height: 860 },
      { width: 390, height: 844 },
    ]) {
      await page.setViewportSize(viewport)
      await page.reload()
      await heading(page, label)
      const preview = page.getByRole('region', { name: 'If you approve' })
      const steps = preview.getByRole('listitem')
      await steps.first().waitFor()
      const texts = (await steps.allInnerTexts()).map((text) => text.replaceAll(/[\u2066-\u2069]/g, '').split(/\n+/))
      expect(texts).toEqual([
        [`Creates the object Namespace ${nameSpace} in k8s`, path],
        [
          `Creates the object RoleBinding ${nameSpace}/administrators in k8s`,
          `/apis/${rbac}/v1/namespaces/${nameSpace}/rolebindings/administrators`,
        ],
        ['Updates the object Namespace default in k8s', '/api/v1/namespaces/default'],
      ])
      // It is seen without scrolling: nothing lies over it, such as the form of the decision.
      const isSeen = await steps.first().evaluate((step) => {
        const { left, top, width, height } = step.getBoundingClientRect()
        return step.contains(document.elementFromPoint(left + width / 2, top + height / 2))
      })
      expect(isSeen).toBe(true)
      expect(await isTooWide(page)).toBe(false)
      await expectAccessible(page, `the preview of Kubernetes objects at ${viewport.width}`)
      await picture(page, `approval-kubernetes-${viewport.width}`)
      expect((await server?.client.call('GET', path))?.status).toBe(404)
    }
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText(`Approved: ${label}`).waitFor()
    expect(complaints).toEqual([])
    await until(async () => (await server?.client.call('GET', path))?.status === 200, 60_000)
  })
})

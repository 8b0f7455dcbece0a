import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, expectLooks, heading, usePortal } from '#testing/browser/portal-browser.ts'

const columns = ['Cluster', 'Namespace', 'Name']

describe.skipIf(!hasChromium())('groups of clusters', () => {
  const { visit } = usePortal({
    changes: {
      'portal.yaml': (text) =>
        text.replace(
          'headerTitle: Example',
          `headerTitle: Example
            groupsAreJson: "true"
            loadPortalGroupsClassName: com.tremolosecurity.scalejs.LoadClusterGroups`,
        ),
      'seed/people.json': (text) => {
        const seed = JSON.parse(text)
        const ada = seed.users.find(({ userID }: { userID: string }) => userID === 'ada')
        ada.groups = ['k8s-cluster-east-administrators-external', 'k8s-namespace-view-east-payroll', 'crew']
        seed.groups.push(...ada.groups.map((name: string) => ({ name })))
        return JSON.stringify(seed)
      },
    },
    more: {
      'clusters.yaml': `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: east }
spec:
  className: targets.Kubernetes
  params: { url: 'https://127.0.0.1:1', token: x, label: Production }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: portal-groups }
spec: { className: auth.AddPortalRoles, uri: /auth/portal-groups, init: { role2label: 'view=Viewers' } }
`,
    },
  })
  const rows = ['N/A N/A crew', 'Production N/A Administrators', 'Production payroll Viewers']

  test('are a table in the profile', async () => {
    const { page, complaints } = await visit('/portal/profile', 'ada')
    await page.getByRole('cell', { name: 'payroll' }).waitFor()
    expect(await page.getByRole('columnheader').allInnerTexts()).toEqual(columns)
    const shown = await page.getByRole('row').allInnerTexts()
    expect(shown.slice(1).map((row) => row.split(/\s+/).join(' '))).toEqual(rows)
    await expectLooks(page, 'profile-cluster-groups')
    expect(complaints).toEqual([])
  })

  test('are a table for the approver', async () => {
    const { page: ada } = await visit('/portal/request', 'ada')
    await ask(ada, 'Access to the vault', 'On call')
    const { page: grace, complaints } = await visit('/portal/approvals', 'grace')
    const label = 'Access to the vault for Ada Lovelace'
    await grace.getByRole('link', { name: label }).click()
    await heading(grace, label)
    const person = grace.getByRole('region', { name: 'Current access' })
    await person.getByRole('cell', { name: 'Viewers' }).waitFor()
    expect(await person.getByRole('columnheader').allInnerTexts()).toEqual(columns)
    await expectAccessible(grace, 'an approval with a table of groups')
    expect(complaints).toEqual([])
  })
})

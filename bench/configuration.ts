import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const tenants = 20
/** The path of the main measured gateway, and of the n-th of the many. */
export const peoplePath = '/scim/people'
export const tenantPath = (n: number): string => `/tenants/${n}/scim`

/** A configuration with a main gateway and as many others, all equal, with the quickstart's issuer and chain. */
export function writeConfiguration(folder: string, quickstart: string, others = tenants): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'authentication.yaml'), quickstart)
  const gateways = [
    gateway('people', peoplePath),
    ...Array.from({ length: others }, (_, n) => gateway(`tenant${n}`, tenantPath(n))),
  ]
  writeFileSync(join(folder, 'gateways.yaml'), gateways.join('---\n'))
  return folder
}

const gateway = (name: string, path: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: ${name}}
spec: {className: targets.Database, params: []}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: {name: scim-${name}}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: {cookiesEnabled: false}
  urls:
    - hosts: ["127.0.0.1"]
      uri: ${path}
      authChain: api
      azRules: [{scope: dn, constraint: "sub=idp,ou=api,o=Tremolo"}]
      filterChain:
        - className: filters.ScimGateway
          params:
            mapping: scim
            lookupTarget: ${name}
            workflowName: ${name}-sync
            deleteUserWorkflowName: ${name}-delete
            groupWorkflow: ${name}-members
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: ${name}-sync}
spec:
  label: sync
  description: sync
  tasks:
    - {taskType: provision, sync: true, target: ${name}}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: ${name}-delete}
spec:
  label: delete
  description: delete
  tasks:
    - {taskType: delete, target: ${name}}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: ${name}-members}
spec:
  label: members
  description: members
  tasks:
    - taskType: customTask
      className: tasks.LoadGroupsFromTarget
      params: {nameAttr: userName, target: ${name}}
    - {taskType: addGroup, name: $groupname$, remove: $removegroup$}
    - {taskType: provision, sync: true, target: ${name}, attributes: [userName]}
`

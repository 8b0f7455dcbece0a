import type { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'

/** A kind of SCIM resource beside users and groups, as a ResourceType object describes it. */
export interface ResourceType {
  /** With the schema of the type, whose name is that of the type, and its extensions. */
  readonly schema: ResourceSchema
  /** Its path below the address of a gateway, such as `/Devices`. */
  readonly endpoint: `/${string}`
  /** The attribute that names a resource, unique without regard to letter case. */
  readonly nameAttribute: string
  /** The target that stores the resources; no other type is stored there. */
  readonly target: string
  /** The workflow that creates and changes a resource. */
  readonly workflow: string
  readonly deleteWorkflow: string | undefined
}

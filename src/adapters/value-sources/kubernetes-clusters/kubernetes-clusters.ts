import { defineValueSource } from '#sdk/mapper/mapper-module.ts'
import { clustersOf } from '#sdk/target/kubernetes-cluster.ts'

/** The clusters among the targets, by their labels. */
export default defineValueSource({
  className: 'sources.KubernetesClusters',
  aliases: ['com.tremolosecurity.scalejs.ListClusters'],
  parameters: {},
  parse: () => ({}),
  create: (_, { targets }) => ({
    list: async ({ search = '', limit }) =>
      clustersOf(targets)
        .map(({ name, label }) => ({ name: label, value: name }))
        .filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
        .slice(0, limit),
    check: async (value) =>
      clustersOf(targets).some(({ name }) => name === value) ? undefined : 'is not the name of a cluster',
  }),
})

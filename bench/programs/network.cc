// A ring of routers with hosts that send to each other (ns-3): its argument is how many seconds are simulated.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstdlib>

using namespace ns3;

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const uint32_t routers = 24;
    RngSeedManager::SetSeed(1);
    NodeContainer nodes;
    nodes.Create(routers);
    InternetStackHelper().Install(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("20Mbps"));
    link.SetChannelAttribute("Delay", StringValue("2ms"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> at(routers);
    for (uint32_t i = 0; i < routers; i++) {
        for (uint32_t far : {(i + 1) % routers, (i + 7) % routers}) {
            auto devices = link.Install(nodes.Get(i), nodes.Get(far));
            at[i] = addresses.Assign(devices).GetAddress(0);
            addresses.NewNetwork();
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer sinks = sink.Install(nodes);
    for (uint32_t i = 0; i < routers; i++) {
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(at[(i * 5 + 11) % routers], 9));
        sender.Install(nodes.Get(i)).Start(Seconds(0.01 * i));
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t received = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++)
        received += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    std::printf("%llu\n", static_cast<unsigned long long>(received));
    Simulator::Destroy();
}

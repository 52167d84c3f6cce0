#!/usr/bin/env bash
# Writes an environment file with the network settings of NCCL and Gloo, for ranks on several machines. Without these
# settings, both may choose an interface that other machines cannot reach, such as Docker's. A second run changes nothing.
#
# usage: nccl.sh [OPTION ...]
#   --interface NAME  network interface [default: that of the default route; lo if there is no other]
#   --env FILE        environment file [default: /etc/sentimill/nccl.env]
#
# Use: set -a; . /etc/sentimill/nccl.env; set +a
#
# The last line of standard output is a JSON object with the facts. Exit codes: 0 done; 64 usage; 78 there is no such interface,
# or none can be chosen.
set -euo pipefail

ACTION=nccl
CLASSES=/sys/class

main() {
    local interface='' env=/etc/sentimill/nccl.env
    while [ $# -gt 0 ]; do
        case $1 in
            --interface) matching "$1" "${2-}" '^[A-Za-z0-9._-]{1,15}$' "the name of an interface" && interface=$2 ;;
            --env) matching "$1" "${2-}" '^/..*' "an absolute path" && env=$2 ;;
            *) other "$1" ;;
        esac
        shift 2
    done
    if [ -z "$interface" ]; then
        interface=$(default_interface)
        [ -n "$interface" ] || fail 78 "no default route and several interfaces ($(interfaces)): choose one with --interface"
    else
        [[ " $(interfaces) " == *" $interface "* ]] || fail 78 "--interface $interface: not found, expected one of $(interfaces)"
    fi
    fact interface "$(text "$interface")"
    write_env "$env" "$interface"
    fact env "$(text "$env")"
}

# default_interface: prints the interface of the default route, or the only one.
default_interface() {
    local routed others
    # Columns: interface, destination, gateway, flags, ..., metric, mask. The default route has destination and mask 0.
    routed=$(awk 'NR > 1 && $2 == "00000000" && $8 == "00000000" {print $7, $1}' /proc/net/route | sort -n | head -n 1)
    others=$(interfaces | tr ' ' '\n' | grep -vx lo || true)
    if [ -n "$routed" ]; then
        echo "${routed#* }"
    elif [ -z "$others" ]; then
        echo lo
    elif [ "$(wc -l <<<"$others")" = 1 ]; then
        echo "$others"
    fi
}

# interfaces: prints the names of all interfaces, separated by spaces. The kernel lists them below two lines of headings.
interfaces() {
    awk -F: 'NR > 2 {gsub(" ", "", $1); printf "%s%s", (NR > 3 ? " " : ""), $1}' /proc/net/dev
}

write_env() {
    local wanted plugin devices=()
    # `=` makes NCCL compare the whole name; otherwise `eth1` would select `eth10` too.
    wanted=$(printf '%s\n' "NCCL_SOCKET_IFNAME==$2" "GLOO_SOCKET_IFNAME=$2" NCCL_DEBUG=WARN)
    compgen -G "$CLASSES/infiniband/*" >/dev/null && devices=("$CLASSES"/infiniband/*)
    if [ ${#devices[@]} = 0 ]; then
        # Without RDMA devices, NCCL would search for them and report that there are none.
        wanted+=$'\nNCCL_IB_DISABLE=1'
        fact rdma false
        fact efa false
    elif compgen -G "$CLASSES/infiniband/efa_*" >/dev/null || compgen -G "$CLASSES/infiniband/rdmap*" >/dev/null; then
        fact rdma true
        # On Ubuntu, its folder is that of the architecture.
        plugin=$(compgen -G "/opt/amazon/ofi-nccl/lib*/libnccl-net*.so" || compgen -G "/opt/amazon/ofi-nccl/lib/*/libnccl-net*.so" ||
            compgen -G "/opt/aws-ofi-nccl/lib*/libnccl-net*.so" || true)
        plugin=${plugin%%$'\n'*}
        if [ -n "$plugin" ]; then
            wanted+=$'\nFI_PROVIDER=efa\nNCCL_NET_PLUGIN='$plugin
            fact efa true
        else
            echo "nccl.sh: this machine has an EFA, but not aws-ofi-nccl, through which NCCL uses it: install EFA's software" \
                "with that plugin; NCCL will use TCP" >&2
            fact efa false
        fi
    else
        fact rdma true
        fact efa false
    fi
    if [ "$(cat "$1" 2>/dev/null)" = "$wanted" ]; then
        fact kept true
    else
        as_root mkdir -p "$(dirname "$1")"
        echo "$wanted" | as_root tee "$1" >/dev/null
        fact kept false
    fi
}

# --- Privileges: equal in all actions that change the node. ---

# EMR runs actions as the user hadoop, who may use sudo without a password.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# --- Reports: equal in all actions. ---

facts='' error=''
# fact NAME JSON
fact() {
    facts+=",\"$1\":$2"
}

# text STRING: prints it as JSON.
text() {
    local value=${1//[[:cntrl:]]/ }
    value=${value//\\/\\\\}
    printf '"%s"' "${value//\"/\\\"}"
}

# fail CODE MESSAGE
fail() {
    error=$2
    echo "$ACTION: $error" >&2
    exit "$1"
}

# report CODE: prints the facts as the last line, however the action ends. A command that failed without an error message of
# this action is a defect.
report() {
    local code=$1 is_ok=true
    if [ "$code" != 0 ]; then
        is_ok=false
        if [ -z "$error" ]; then
            error="a command failed with code $code; see the lines above"
            echo "$ACTION: $error" >&2
            code=70
        fi
        fact error "$(text "$error")"
    fi
    printf '{"action":"%s","ok":%s%s}\n' "$ACTION" $is_ok "$facts"
    exit "$code"
}
trap 'report $?' EXIT

# matching FLAG VALUE REGEX EXPECTED
matching() {
    [[ $2 =~ $3 ]] || fail 64 "$1 ${2:-without a value}: expected $4; see --help"
}

# other ARGUMENT: prints the help, or refuses the argument.
other() {
    case $1 in
        -h | --help)
            trap - EXIT
            sed -n '/^# usage/,/^set /s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
    esac
    fail 64 "$1: unexpected argument; see --help"
}

main "$@"
